"""Turn ONNX's operators into circle's: by one function each, found in the files of
``operators``.

Another operator means another function with ``@rule("ItsName")`` in the file of its family, and
nothing else.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.node import Node
from luciole.ir import Value

Results = Value | Sequence[Value | None]
Rule = Callable[[Building, Node], Results]
"""Adds operators to the graph that is built, and returns the values of a node's results: those that
are left out may be None. Raises RefusedError where a node has no form.
"""

_RULES: dict[tuple[str, str], Rule] = {}

STANDARD = ("", "ai.onnx")
"""Names of the domain of ONNX's own operators."""


def rule(*kinds: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register the rule of operators. Raises TypeError for one that has another already."""

    def register(function: Rule) -> Rule:
        for kind in kinds:
            if (domain, kind) in _RULES:
                raise TypeError(f"{kind} has two rules")
            _RULES[domain, kind] = function
        return function

    return register


@cache
def load_rules() -> None:
    """Import every file of ``operators`` once, so that the rules register themselves."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent / "operators")]):
        importlib.import_module(f"{__package__}.operators.{module.name}")


def find_rule(domain: str, kind: str) -> Rule | None:
    """Find the rule of an operator, None where there is none."""
    load_rules()
    return _RULES.get(("" if domain in STANDARD else domain, kind))


def standard(
    k: Building,
    kind: str,
    operands: Sequence[Value | None],
    attributes: Mapping[str, object] | None = None,
    opset: int = 21,
) -> Value:
    """Add ONNX's own operator of one result as a part of another one. Raises RefusedError where it
    has no form.
    """
    rule = find_rule("", kind)
    assert rule is not None, "only operators with a rule are parts"
    made = rule(k, Node(kind, opset, operands, [kind], attributes or {}))
    result = made if isinstance(made, Value) else made[0]
    assert result is not None, "it has a result"
    return result


def ruled() -> list[tuple[str, str]]:
    """List all operators that have a rule: domains and names."""
    load_rules()
    return sorted(_RULES)
