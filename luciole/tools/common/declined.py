"""Operators that run in another form than as a compiled kernel of their own, and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from luciole.interpreter.plan import Plan
from luciole.tools.common.console import fitted, print_table

Row = tuple[str, str, str]
"""An operator's name and kind, and why it runs in another form."""


def declined(plan: Plan) -> list[Row]:
    """List the operators of a plan that are computed in floats in place of their integers, or are
    not compiled, in execution order.
    """
    rows = []
    for source, steps in groupby(plan.steps, lambda step: step.source):
        reasons = [plan.simulated.get(source, ""), *(step.reason for step in steps)]
        rows += [(source.name, source.kind, reason) for reason in reasons if reason]
    return rows


def print_declined(rows: Sequence[Row]) -> None:
    """Print a table of them."""
    print_table(fitted([("operator", "kind", "why"), *rows]), "not compiled as they are")
