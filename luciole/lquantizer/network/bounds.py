"""Bound what tensors of a float network can hold, whatever it is fed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Op, Value
from luciole.ir.ops.activations import FUSED_AS, LIMITS, Logistic, Tanh
from luciole.ir.ops.elementwise_binary import Add, Maximum, Mul, SquaredDifference
from luciole.ir.ops.elementwise_unary import Abs, Exp, Sqrt, Square
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reduce import Mean, Sum
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.space_to_batch_nd import SpaceToBatchND
from luciole.ir.quant import Like
from luciole.lquantizer.calibration.rows import Product, bias_of, weight_rows
from luciole.schema.enums import ActivationFunctionType as Act

Floats = NDArray[np.float64]
Interval = tuple[float, float]
"""The least and the largest number."""

_ANYTHING = (-np.inf, np.inf)
_ABOVE_0 = float(np.finfo(np.float32).smallest_subnormal)
_ENDS: dict[type[Op], Interval] = {
    Exp: (_ABOVE_0, np.inf),
    Logistic: (_ABOVE_0, 1.0),
    Softmax: (_ABOVE_0, 1.0),
    Tanh: (-1.0, 1.0),
    SquaredDifference: (0.0, np.inf),
}
"""Bounds of operators' results, for any operands."""


def intervals_of(graph: Graph) -> dict[Value, Interval]:
    """Find for the first result of each operator the least and the largest number that it can hold:
    infinite ones where nothing is known.
    """
    intervals: dict[Value, Interval] = {}
    for op in (op for op in graph.ops if op.results):
        activation = op.attributes().get("activation", Act.NONE)
        cut = LIMITS.get(activation, _ANYTHING)
        intervals[op.results[0]] = _clipped(_interval(op, intervals), cut)
    return intervals


def highest(op: Product, intervals: Mapping[Value, Interval]) -> Floats:
    """Find the largest number that each of a layer's outputs can be in front of its activation:
    [outputs].
    """
    return _extremes(op, intervals)[1]


def _interval(op: Op, known: Mapping[Value, Interval]) -> Interval:
    """Bound an operator's results in front of its activation."""
    if isinstance(op, Product) and all(v is None or v.data is not None for v in op.operands[1:]):
        low, high = _extremes(op, known)
        return float(low.min(initial=np.inf)), float(high.max(initial=-np.inf))
    dtype = op.results[0].dtype
    inputs = [_interval_of(v, known) for v in op.operands if v is not None and v.dtype == dtype]
    if type(op) in _ENDS or not inputs:
        return _ENDS.get(type(op), _ANYTHING)
    if type(op) in FUSED_AS:
        return _clipped(inputs[0], LIMITS[FUSED_AS[type(op)]])
    rule = _RULES.get(type(op))
    if rule is not None:
        return rule(op, inputs)
    return _hull(inputs) if op.quant and isinstance(op.quant.result, Like) else _ANYTHING


def _clipped(interval: Interval, limits: Interval) -> Interval:
    low, high = np.clip(interval, *limits).tolist()
    return low, high


def _hull(inputs: Sequence[Interval]) -> Interval:
    """Return the range around all intervals."""
    return min(low for low, _ in inputs), max(high for _, high in inputs)


def _product(first: Interval, second: Interval) -> Interval:
    with np.errstate(invalid="ignore"):
        ends = np.nan_to_num(np.outer(first, second), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return float(ends.min()), float(ends.max())


def _square(interval: Interval) -> Interval:
    low, high = _size(interval)
    return low * low, high * high


def _size(interval: Interval) -> Interval:
    """Bound how far from 0 a number is."""
    low, high = interval
    return max(low, -high, 0.0), max(-low, high)


def _sum(interval: Interval) -> Interval:
    """Bound the sum of however many numbers."""
    low, high = interval
    return low if low >= 0 else -np.inf, high if high <= 0 else np.inf


_RULES: dict[type[Op], Callable[[Op, Sequence[Interval]], Interval]] = {
    Abs: lambda _, inputs: _size(inputs[0]),
    Add: lambda _, inputs: (inputs[0][0] + inputs[1][0], inputs[0][1] + inputs[1][1]),
    Maximum: lambda _, inputs: (max(i[0] for i in inputs), max(i[1] for i in inputs)),
    Mean: lambda _, inputs: inputs[0],
    Mul: lambda op, inputs: (
        _square(inputs[0]) if op.operands[0] is op.operands[1] else _product(*inputs)
    ),
    Pad: lambda _, inputs: _hull([*inputs, (0.0, 0.0)]),
    SpaceToBatchND: lambda _, inputs: _hull([*inputs, (0.0, 0.0)]),
    Sqrt: lambda _, inputs: (max(inputs[0][0], 0.0) ** 0.5, max(inputs[0][1], 0.0) ** 0.5),
    Square: lambda _, inputs: _square(inputs[0]),
    Sum: lambda _, inputs: _sum(inputs[0]),
}


def _extremes(op: Product, known: Mapping[Value, Interval]) -> tuple[Floats, Floats]:
    """Find the least and the largest sum of each output, bias included: [outputs] each. Padding is
    0.
    """
    data = op.operands[0]
    low, high = _hull([(0.0, 0.0), _ANYTHING if data is None else _interval_of(data, known)])
    rows = weight_rows(op).astype(np.float64)
    above, below = rows.clip(min=0).sum(1), rows.clip(max=0).sum(1)
    bias = bias_of(op)
    return (
        _times(above, low) + _times(below, high) + bias,
        _times(above, high) + _times(below, low) + bias,
    )


def _times(sums: Array, end: float) -> Floats:
    """Multiply, nothing being nothing times infinity."""
    return np.multiply(sums, end, out=np.zeros(len(sums)), where=sums != 0)


def _interval_of(value: Value, known: Mapping[Value, Interval]) -> Interval:
    if value.data is not None and value.data.size:
        return float(value.data.min()), float(value.data.max())
    return known.get(value, _ANYTHING)
