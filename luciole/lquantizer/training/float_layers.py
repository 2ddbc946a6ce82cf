"""Layers that stay float beside learned levels: their weights and biases are trained with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.lquantizer.training.units import of_sums, of_weights, sizes


class FloatConstant(NamedTuple):
    """Weights or a bias [...] of a float layer, and the units that learning rates count in."""

    value: Value
    start: Array
    unit: Array


def float_constants(graph: Graph, others: Collection[Op]) -> dict[Value, FloatConstant]:
    """Find the float weights and biases of all layers but others."""
    constants: dict[Value, FloatConstant] = {}
    for op in graph.ops:
        if op not in others:
            constants.update((constant.value, constant) for constant in _constants_of(op))
    return constants


def _constants_of(op: Op) -> Iterator[FloatConstant]:
    """List a layer's float weights and bias."""
    weights = None if op.quant is None or op.quant.weight is None else weight_constant(op)
    if op.quant is None or weights is None or (array := _floats(weights)) is None:
        return
    if not array.any():
        return
    means = sizes(array, op.quant.axis)
    yield FloatConstant(weights, array, of_weights(means))
    bias = op.given_operands().get(op.quant.bias or "")
    if bias is not None and (start := _floats(bias)) is not None and start.size == means.size:
        units = of_sums(means, array.size // means.size)
        yield FloatConstant(bias, start, units.reshape(start.shape))


def _floats(value: Value) -> Array | None:
    """Read a constant of floats that is not sparse and not empty."""
    if value.dtype != TensorType.FLOAT32 or value.sparsity is not None:
        return None
    return value.data if value.data is not None and value.data.size else None
