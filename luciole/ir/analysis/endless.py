"""Find the tensors that hold infinities because constants do: attention masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_binary import Maximum, Minimum, Mul
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.reduce import ReduceMax, ReduceMin
from luciole.ir.ops.softmax import LogSoftmax
from luciole.ir.quant import Like
from luciole.ir.value import Value
from luciole.schema.enums import TensorType

ENDLESS = 1e8
"""The magnitude from which on a constant stands for infinity: masks are -inf, the least float or
-1e9, and no layer computes with such numbers."""

Signs = frozenset[int]
"""Signs of infinities, 0 for NaN."""

_PICKING: dict[type[Op], int] = {
    Maximum: -1,
    MaxPool2D: -1,
    ReduceMax: -1,
    Minimum: 1,
    ReduceMin: 1,
}
"""Operators that pick one of several elements, and the sign of the infinity that they do not pick
where there is anything else.
"""


def endless_tensors(graph: Graph) -> dict[Value, Signs]:
    """Find the tensors that may hold infinities, or numbers that stand for them, because constants
    do, these constants among them, and the signs.
    """
    signs = {value: own for value in _constants(graph) if (own := _signs_of(value))}
    for op in graph.ops if signs else ():
        made = _signs_made(op, signs) - {0}
        if made:
            signs |= dict.fromkeys((v for v in op.results if v.dtype == TensorType.FLOAT32), made)
    return signs


def bounded(data: Array) -> Array:
    """Return the numbers [n] of an array of any shape that stand for no infinity."""
    return np.asarray(data[np.abs(data) < ENDLESS])


def _constants(graph: Graph) -> Iterator[Value]:
    """Yield the constants that operators read beside weights and biases."""
    for op in graph.ops:
        layer = () if op.quant is None else (op.quant.weight, op.quant.bias)
        for name, value in op.named_operands():
            if value is not None and value.dtype == TensorType.FLOAT32 and name not in layer:
                yield value


def _signs_of(value: Value) -> Signs:
    data = value.data if value.is_constant else None
    if data is None:
        return frozenset()
    far = data[~(np.abs(data) < ENDLESS)]
    return frozenset(np.sign(np.nan_to_num(far, nan=0.0)).astype(int).tolist())


def _signs_made(op: Op, signs: Mapping[Value, Signs]) -> Signs:
    """Find which infinities an operator makes of infinities that it reads."""
    read = [frozenset() if v is None else signs.get(v, frozenset()) for v in op.operands]
    if op.quant is None or not any(read):
        return frozenset()
    if isinstance(op, Mul):
        return frozenset((-1, 1))
    if isinstance(op, LogSoftmax):
        return frozenset((-1,))
    if op.quant.terms:
        pairs = zip(op.quant.terms, read, strict=True)
        return frozenset(term * sign for term, own in pairs for sign in own)
    if not isinstance(op.quant.result, Like):
        return frozenset()
    named = [
        own
        for slot, own in enumerate(read)
        if op.operand_field(slot).name in op.quant.result.operands
    ]
    every = frozenset().union(*named)
    passed = next((sign for kind, sign in _PICKING.items() if isinstance(op, kind)), None)
    kept = len(named) > 1 and all(passed in own for own in named)
    return every if passed is None or kept else every - {passed}
