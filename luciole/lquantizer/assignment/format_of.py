"""Read the format of a layer off the operators of a graph: what a file holds, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from luciole.ir import Op, TensorType, Value
from luciole.ir.analysis.weights import (
    input_levels,
    is_layer,
    learned_weights,
    table_constant,
    weight_constant,
)
from luciole.ir.blockwise import blocks_of
from luciole.ir.dtypes import element_bits
from luciole.ir.errors import LucioleError
from luciole.ir.ops.minifloat import minifloat_of
from luciole.ir.ops.quantize import Dequantize
from luciole.lquantizer.assignment.layer_format import (
    Float,
    Integers,
    LayerFormat,
    Levels,
    Minifloat,
    StoredLevels,
)
from luciole.lquantizer.formats.even_levels import is_even

_FLOATS = {TensorType.FLOAT32: Float(), TensorType.FLOAT16: Float(16)}
_UNSIGNED = (TensorType.UINT4, TensorType.UINT8)


def format_of(op: Op) -> LayerFormat | None:
    """Read the format of a layer; None of another operator, and of numbers that have no word."""
    if not is_layer(op):
        return _of_table(op)
    try:
        return _levels(op) or _minifloat(op) or _plain(op)
    except LucioleError:  # constants that do not fit, and bits that no format has
        return None


def word_of(op: Op) -> str:
    """Write the format of a layer, nothing where it has no word."""
    format = format_of(op)
    return "" if format is None else str(format)


def _levels(op: Op) -> Levels | Integers | None:
    weights, inputs = learned_weights(op), input_levels(op)
    if weights is None:
        return None
    width = _integer_width(op.operands[0])
    if width is not None:
        return Integers(weights.format.bits, width)
    levels = [weights.format] if inputs is None else [weights.format, inputs]
    even = all(one.bits == 1 or is_even(one.basis.astype(np.float64)) for one in levels)
    return Levels(weights.format.bits, None if inputs is None else inputs.bits, even)


def _minifloat(op: Op) -> Minifloat | None:
    values = [value for value in op.operands if value is not None]
    numbers = next(filter(None, map(minifloat_of, reversed(values))), None)
    return None if numbers is None else Minifloat(numbers.exponent, numbers.mantissa)


def _plain(op: Op) -> LayerFormat | None:
    """Read integers and floats: of weights, of what they are decoded from, or where there are none
    of the second of two tensors.
    """
    weights = weight_constant(op) or _operand(op)
    if weights is None:
        return None
    source = _decoded_from(weights)
    if source is not None:
        return _FLOATS.get(source.dtype) or _stored(source)
    if weights.dtype in _FLOATS:
        return _FLOATS[weights.dtype]
    if blocks_of(weights) is not None:
        return _stored(weights)
    width = _integer_width(op.operands[0])
    return Integers(element_bits(weights.dtype) or 0, width, weights.dtype in _UNSIGNED)


def _of_table(op: Op) -> StoredLevels | None:
    """Read the format of a table whose integers become real numbers as they are looked up."""
    table = table_constant(op)
    if table is None or table.dtype in _FLOATS or op.results[0].dtype not in _FLOATS:
        return None
    stored = _stored(table)
    return replace(stored, block=None) if stored.block == table.dims[-1] else stored


def _integer_width(inputs: Value | None) -> int | None:
    """Return the bits of a layer's input, None where it is real numbers."""
    return None if inputs is None or inputs.dtype in _FLOATS else element_bits(inputs.dtype)


def _operand(op: Op) -> Value | None:
    """Find the weights where they are computed, or the second of two tensors."""
    name = None if op.quant is None else op.quant.weight
    declared = op.given_operands().get(name or "")
    return declared or next(iter(op.operands[1:2]), None)


def _decoded_from(value: Value) -> Value | None:
    """Find the constant that a DEQUANTIZE reads weights from."""
    made = None if value.producer is None else value.producer.op
    return made.input if isinstance(made, Dequantize) and made.input.is_constant else None


def _stored(source: Value) -> StoredLevels:
    blocks = blocks_of(source)
    size = None if blocks is None else blocks.block_size
    return StoredLevels(element_bits(source.dtype) or 0, size, source.dtype in _UNSIGNED)
