"""Find which TensorFlow function computes an operator: a table that modules of functions fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from luciole.ir import Op, TensorType, UnknownOp, UnsupportedError, Value
from luciole.ir.ops.control_flow import While
from luciole.ir.passes.canonical.unroll_unidirseqlstm import LOOPS

Function = Callable[..., Any]
"""``function(tf, op, *operands) -> tensor``, or a list of tensors for several results. Constants
are NumPy arrays, so that axes and shapes are known while the function is traced; absent operands
are None, a variadic operand is a tuple.
"""

F = TypeVar("F", bound=Function)

PLAIN = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL)
"""Element types that mean the same in TensorFlow: quantized integers have scales besides."""

_TABLE: dict[type[Op], Function] = {}


def differentiable(*classes: type[Op]) -> Callable[[F], F]:
    """Register the TensorFlow form of operator classes."""

    def register(function: F) -> F:
        for cls in classes:
            if cls in _TABLE:
                raise TypeError(f"{cls.__name__} has two TensorFlow forms")
            _TABLE[cls] = function
        return function

    return register


def find_function(op: Op) -> Function:
    """Find the TensorFlow form of an operator. Raises UnsupportedError when there is none."""
    function = _TABLE.get(type(op))
    if function is None:
        raise UnsupportedError(f"{op} has no form that can be trained through{_hint(op)}")
    types = {value.dtype for value in op.operands if value is not None} - set(PLAIN)
    if types:
        names = ", ".join(sorted(t.name for t in types))
        raise UnsupportedError(f"{op} works on {names}: only float networks can be trained through")
    return function


def _hint(op: Op) -> str:
    if isinstance(op, UnknownOp):
        return ""
    if isinstance(op, While):
        return f" ({LOOPS})"
    return " (unroll it first)" if "SEQUENCE" in op.kind else ""


def refuse_unsupported(ops: Iterable[Op], trained: Collection[Op]) -> None:
    """Raise one UnsupportedError that lists every operator without a TensorFlow form."""
    reasons: dict[str, list[str]] = {}
    for op in ops:
        if op in trained:
            continue
        try:
            find_function(op)
        except UnsupportedError as error:
            reasons.setdefault(op.kind, []).append(str(error))
    if reasons:
        kinds = ", ".join(f"{kind} ({len(why)}x)" for kind, why in reasons.items())
        first = next(iter(reasons.values()))[0]
        raise UnsupportedError(f"cannot fine-tune {kinds}: {first}", list(reasons))


def registered() -> frozenset[type[Op]]:
    """List the operator classes that have a TensorFlow form."""
    return frozenset(_TABLE)


def is_constant(value: Value | None, known: Collection[Value]) -> bool:
    """Check whether an operand is absent or already known as an array."""
    return value is None or value in known
