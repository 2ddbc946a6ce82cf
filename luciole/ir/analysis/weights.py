"""The weights of a layer, whatever their format: codes, what the codes stand for, real numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import sparsity
from luciole.ir.analysis.decoded import decoded, is_decoder
from luciole.ir.blockwise import Blockwise, blocks_of
from luciole.ir.dtypes import Array
from luciole.ir.errors import LucioleError, ShapeError
from luciole.ir.fields import INDEX
from luciole.ir.learned_levels import WORD, numbers, unpack
from luciole.ir.number_format import Affine, Float, LearnedLevels, NumberFormat
from luciole.ir.op import Op
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected, clusters_of, matrix_rows
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.value import Value
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat, TensorType

MOST_BITS = 8
"""Bits of a code up to which all levels of a row are listed."""


F = TypeVar("F", bound=NumberFormat, covariant=True)


@dataclass(frozen=True, eq=False)
class Weights(Generic[F]):
    """A layer's weights: a row of codes for each output [o, n], and what the codes stand for.

    ``shape`` are the axes of one row: [n] of a dense layer, [kh, kw, c] of a convolution.
    """

    codes: Array
    format: F
    shape: tuple[int, ...]

    def values(self) -> NDArray[np.float64]:
        """Decode the numbers that the layer multiplies with: [o, n]."""
        return self.format.decode(self.codes)


def weights_of(op: Op) -> Weights[NumberFormat] | None:
    """Read the weights of an operator; None where it has none, where they are computed, and where
    they are plain integers or in a layout of their own.

    Raises LucioleError for constants that do not fit each other.
    """
    learned = learned_weights(op)
    if learned is not None or op.quant is None or op.quant.weight is None:
        return learned
    value, axis = weight_constant(op), op.quant.axis
    if value is None:
        return _of_codes(op, axis)
    number_format = None if _is_shuffled(op) else _format(value, axis)
    if number_format is None:
        return None
    data = value.data if value.sparsity is None else sparsity.dense(value)
    if data is None or not -data.ndim <= axis < data.ndim:
        return None
    rows = np.moveaxis(data, axis, 0)
    codes = rows.reshape(len(rows), -1)
    if isinstance(number_format, Affine) and _is_misnamed(op, number_format):
        codes, number_format = codes.view(np.int8), replace(number_format, dtype=TensorType.INT8)
    return Weights(codes, number_format, rows.shape[1:])


def learned_weights(op: Op) -> Weights[LearnedLevels] | None:
    """Read the weights of a layer with learned levels; None for another one, and for computed ones.

    Raises ShapeError for constants that do not fit each other or the operator.
    """
    if not isinstance(op, LQFullyConnected | LQConv2D | BCQFullyConnected):
        return _of_decoder(op)
    _check_types(op)
    return _of_planes(op) if isinstance(op, BCQFullyConnected) else _of_levels(op)


def has_levels(op: Op) -> bool:
    """Return whether an operator is a layer with learned levels, be they read by another one."""
    if isinstance(op, LQFullyConnected | LQConv2D | BCQFullyConnected):
        return True
    value = coded_weight(op)
    made = None if value is None or value.producer is None else value.producer.op
    return isinstance(made, LevelsDecode)


def has_weights(op: Op) -> bool:
    """Return whether an operator is a layer: one of its operands is declared as the weight."""
    return op.quant is not None and op.quant.weight is not None


def table_constant(op: Op) -> Value | None:
    """Find the constant whose rows an operator picks, be they behind a DEQUANTIZE."""
    value = op.given_operands().get((op.quant and op.quant.table) or "")
    made = None if value is None or value.producer is None else value.producer.op
    source = made.input if isinstance(made, Dequantize) else value
    return source if source is not None and source.is_constant and len(source.dims) > 1 else None


def stored_constant(op: Op) -> Value | None:
    """Find the constant of a layer's weights, or of rows that become real numbers as they are
    looked up.
    """
    is_table = isinstance(op, EmbeddingLookup) and op.infer_dtype() == TensorType.FLOAT32
    return weight_constant(op) if has_weights(op) or is_table else None


def is_layer(op: Op) -> bool:
    """Return whether an operator multiplies matrices, whether or not one of them is declared as the
    weight.
    """
    return has_weights(op) or op.macs() is not None


def weight_constant(op: Op) -> Value | None:
    """Find the constant that an operator's weights are in: the declared one, else the largest
    matrix.
    """
    if op.quant is not None and op.quant.weight is not None:
        declared = op.given_operands().get(op.quant.weight)
        return declared if declared is not None and declared.is_constant else None
    matrices = [
        v
        for v in op.operands
        if v is not None and v.is_constant and len(v.dims) >= 2 and v.dtype not in INDEX
    ]
    return max(matrices, key=lambda v: len(v.buffer or ()), default=None)


def coded_weight(op: Op) -> Value | None:
    """Find the tensor of an operator's weights where it is read from constant codes."""
    name = None if op.quant is None else op.quant.weight
    value = op.given_operands().get(name or "")
    made = None if value is None or value.producer is None else value.producer.op
    return value if is_decoder(made) else None


def input_levels(op: Op) -> LearnedLevels | None:
    """Read the levels of a layer's input, None where it has none and where they are computed, or of
    another rank than ``verify`` lets pass.
    """
    if not isinstance(op, LQFullyConnected | LQConv2D) or op.input_scales.data is None:
        return None
    if op.input_scales.data.ndim != 1:
        return None
    return LearnedLevels(op.input_scales.data, np.array(op.input_offset))


def _format(value: Value, axis: int) -> NumberFormat | None:
    """Read the number format of a constant's elements, their ``axis`` moved to the front."""
    if value.dtype in (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64):
        return Float(value.dtype)
    if blocks_of(value) is not None:
        return Blockwise.given(value) if axis == 0 else None
    if Affine.given(value) is None:
        return None
    affine = Affine.of(value, "the weights tensor", only_read=True)
    if affine.scale.size > 1 and affine.axis != axis % len(value.dims):
        raise LucioleError(
            f"the weights tensor has its scales along axis {affine.axis}, not {axis}"
        )
    return replace(affine, axis=0)


def _is_shuffled(op: Op) -> bool:
    """Return whether weights are laid out as only some kernels know them."""
    plain = FullyConnectedOptionsWeightsFormat.DEFAULT
    return isinstance(op, FullyConnected) and op.weights_format != plain


def _is_misnamed(op: Op, affine: Affine) -> bool:
    """Return whether weights are called UINT8, but their bytes are signed: under a float input, in
    files from before TFLite had INT8.
    """
    first, (_, points) = op.operands[0], affine.parameters
    is_float = first is not None and first.dtype == TensorType.FLOAT32
    return is_float and affine.dtype == TensorType.UINT8 and not points.any()


def _of_codes(op: Op, axis: int) -> Weights[NumberFormat] | None:
    """Read weights that an operator makes of constant codes."""
    value = coded_weight(op)
    constant = None if value is None else decoded(value)
    if constant is None or not -constant.codes.ndim <= axis < constant.codes.ndim:
        return None
    axis %= constant.codes.ndim
    if isinstance(constant.format, LearnedLevels) and axis != constant.axis:
        return None
    rows = constant.codes if axis == constant.axis else np.moveaxis(constant.codes, axis, 0)
    return Weights(rows.reshape(len(rows), -1), constant.format, rows.shape[1:])


def _of_decoder(op: Op) -> Weights[LearnedLevels] | None:
    """Read weights that a LevelsDecode makes of constant codes."""
    weights = _of_codes(op, op.quant.axis) if op.quant is not None and has_levels(op) else None
    if weights is None or not isinstance(weights.format, LearnedLevels):
        return None
    return Weights(weights.codes, weights.format, weights.shape)


def _of_levels(op: LQFullyConnected | LQConv2D) -> Weights[LearnedLevels] | None:
    operands = (op.weights_scales, op.weights_binary, op.weights_offsets)
    scales, words, offsets = (None if value is None else value.data for value in operands)
    if scales is None or words is None or (offsets is None and op.weights_offsets is not None):
        return None
    count = op.hidden_size if isinstance(op, LQFullyConnected) else op.input_channels
    if words.shape[:2] != scales.shape or words.shape[-1] != -(-count // WORD):
        raise ShapeError(
            f"{op}: bit planes {list(words.shape)} do not fit bases {list(scales.shape)} "
            f"and rows of {count}"
        )
    _check_bits(op, scales.shape[1])
    signs = unpack(words, count)
    offsets = np.zeros(len(scales), np.float32) if offsets is None else offsets
    codes = numbers(signs.reshape(*scales.shape, -1))
    return Weights(codes, LearnedLevels(scales, offsets), signs.shape[2:])


def _of_planes(op: BCQFullyConnected) -> Weights[LearnedLevels] | None:
    """Give rows the bits of their clusters; the bases' entries beyond these are 0."""
    constants = [v.data for v in (op.weights_scales, op.weights_binary, op.weights_clusters)]
    scales, words, table = constants
    if scales is None or words is None or table is None:
        return None
    hidden = op.weights_hidden_size
    clusters = clusters_of(table, len(words))
    widths = np.repeat([c.bits for c in clusters], [c.size for c in clusters]).astype(np.intp)
    most = int(widths.max(initial=0))
    _check_bits(op, most)
    rows = matrix_rows(clusters)
    order = np.argsort(rows, kind="stable")
    plane = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    basis = np.zeros((len(widths), most))
    basis[rows[order], plane] = scales[order]
    signs = np.zeros((len(widths), most, hidden), np.bool_)
    signs[rows[order], plane] = unpack(words, hidden)[order]
    return Weights(numbers(signs), LearnedLevels(basis, np.zeros(len(widths)), widths), (hidden,))


def _check_types(op: Op) -> None:
    """Raise ShapeError for a constant of another element type: bits and clusters are of the types
    that the operator says, all else is FLOAT32.
    """
    for slot, value in enumerate(op.operands):
        allowed = op.operand_field(slot).dtypes or (TensorType.FLOAT32,)
        if value is not None and value.is_constant and value.dtype not in allowed:
            names = " or ".join(t.name for t in allowed)
            raise ShapeError(f"{op}: operand {value.name!r} is {value.dtype.name}, not {names}")


def _check_bits(op: Op, bits: int) -> None:
    if not 1 <= bits <= MOST_BITS:
        raise ShapeError(f"{op}: weights have {bits} bits, 1 to {MOST_BITS} are possible")
