"""Operators that NumPy runs because no compiled kernel was built, and why."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.interpreter.plan import Plan
from luciole.tools.common.console import fitted, print_table

Row = tuple[str, str, str]
"""An operator's name and kind, and why it is not compiled."""


def declined(plan: Plan) -> list[Row]:
    """List the operators of a plan that are not compiled, in execution order."""
    return [(s.source.name, s.source.kind, s.reason) for s in plan.steps if s.reason]


def print_declined(rows: Sequence[Row]) -> None:
    """Print a table of them."""
    print_table(fitted([("operator", "kind", "why"), *rows]), "run by NumPy, not compiled")
