"""Find the power by which a tensor grows with another one: 2 of a square, 0 of a quotient of
equals, which is as large however large its source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.op import Op
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Minimum, Mul, Pow, Sub
from luciole.ir.ops.elementwise_unary import Abs, Neg, Rsqrt, Sqrt, Square
from luciole.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType

_DEEPEST = 24
"""Operators between a tensor and the source that are looked at."""
_EPSILON = 1e-2
"""Largest number beside a tensor that keeps it from 0 and is nothing otherwise."""

_KEEP = (Abs, BroadcastTo, Mean, Neg, ReduceMax, ReduceMin, Relu, Reshape, Sum, Transpose)
_POWERS: dict[type[Op], float] = {
    **dict.fromkeys(_KEEP, 1.0),
    Rsqrt: -0.5,
    Sqrt: 0.5,
    Square: 2.0,
}
_COMBINE: dict[type[Op], Callable[[float, float], float]] = {
    Div: lambda x, y: x - y,
    Mul: lambda x, y: x + y,
}
_KNOWN = (*_POWERS, *_COMBINE, Pow, Add, Maximum, Minimum, Sub)


class Degrees:
    """Finds the powers by which tensors grow with a ``source``."""

    def __init__(self, source: Value) -> None:
        self._known: dict[Value, float | None] = {source: 1.0}

    def of(self, value: Value, deepest: int = _DEEPEST) -> float | None:
        """Return the power by which a tensor grows, 0 of constants; None where it grows by no
        power, or with other tensors.
        """
        if value not in self._known:
            self._known[value] = 0.0 if value.is_constant else self._computed(value, deepest)
        return self._known[value]

    def _computed(self, value: Value, deepest: int) -> float | None:
        op = None if value.producer is None else value.producer.op
        if op is None or deepest == 0 or not isinstance(op, _KNOWN) or not _keeps_powers(op):
            return None
        first = self.of(op.required(0), deepest - 1)
        if first is None or type(op) in _POWERS:
            return None if first is None else first * _POWERS[type(op)]
        if isinstance(op, Pow):
            exponent = op.y.data
            return first * float(exponent.flat[0]) if _is_number(exponent) else None
        second = self.of(op.required(1), deepest - 1)
        return None if second is None else _of_two(op, first, second)


def _of_two(op: Op, first: float, second: float) -> float | None:
    if type(op) in _COMBINE:
        return _COMBINE[type(op)](first, second)
    terms = zip((first, second), op.operands, strict=True)
    kept = {degree for degree, value in terms if not _is_epsilon(value)}
    return kept.pop() if len(kept) == 1 else None


def _keeps_powers(op: Op) -> bool:
    """Return whether nothing is cut off but at 0."""
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    return activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU)


def _is_number(data: Array | None) -> TypeGuard[Array]:
    return data is not None and data.size == 1


def _is_epsilon(value: Value | None) -> bool:
    data = None if value is None else value.data
    return data is not None and bool(np.abs(data).max(initial=0) <= _EPSILON)
