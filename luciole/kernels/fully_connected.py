"""FULLY_CONNECTED kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.analysis.fixed_point import quantize_multiplier
from luciole.ir.blockwise import Blockwise, blocks_of
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.limits import room
from luciole.kernels.core.reasons import UNFIT, Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.layers.floats.blocks import BlockLayer, pays, takes
from luciole.kernels.layers.floats.layer import Arrays, FloatLayer, Geometry, arrays_of
from luciole.kernels.layers.int8 import hybrid
from luciole.kernels.layers.int8.byte_layer import Side
from luciole.kernels.layers.int8.hybrid_layer import WIDE_SUMS, HybridLayer, may_overflow
from luciole.kernels.layers.int8.layer import IntegerLayer
from luciole.kernels.layers.int8.rescale import BYTES, SHORTS, SIGNATURES, Rescaling, centred
from luciole.kernels.layers.int16.layer import ShortLayer
from luciole.kernels.layers.int16.pair_tiles import Scaling
from luciole.kernels.portable.calls import CCall, Field, PortableContext, number_of, portable
from luciole.kernels.portable.floats import activated, as_limits
from luciole.kernels.portable.hybrid import BY_BYTES, hybrid_calls
from luciole.kernels.portable.images import cut_off, windows_of
from luciole.kernels.portable.integers import (
    INT8_BY_4,
    INT8S,
    INT16S,
    UINT8S,
    check_sums,
    kind_of,
    with_zeros,
)
from luciole.kernels.portable.packed import BLOCK, with_packed_weights
from luciole.schema.enums import (
    FullyConnectedOptionsWeightsFormat,
    Padding,
)


@reference(FullyConnected, TensorType.FLOAT32)
def fully_connected(op: FullyConnected, x: Array, weights: Array, bias: Array | None) -> Array:
    """Multiply all rows by the weights in one matrix product."""
    y = _sums(op, x, weights)
    return _shaped(op, x, activate(y if bias is None else y + bias.reshape(-1), op.activation))


@reference(FullyConnected, *SIGNATURES)
def fully_connected_integer(
    op: FullyConnected, x: Array, weights: Array, bias: Array | None
) -> Array:
    """Multiply quantized rows and weights; sums are integers, results quantized."""
    to = _rescaling(op)
    sums = _sums(op, centred(x, to.input_zero), to.centred_weights(weights, 0))
    return _shaped(op, x, to.exact(sums, bias))


@reference(FullyConnected, *hybrid.SIGNATURES)
def fully_connected_hybrid(
    op: FullyConnected, x: Array, weights: Array, bias: Array | None
) -> Array:
    """Multiply float rows, quantized one by one, and integer weights, as TFLite does; sums are
    integers. Weights with a scale for each block are multiplied as the real numbers they are.
    """
    blocks = Blockwise.given(op.weights)
    if blocks is not None:
        real = blocks.decode(weights).astype(np.float32)
        return np.asarray(fully_connected(op, x, real, bias))
    weights = hybrid.signed(weights)
    rows = x.reshape(-1, weights.shape[1])
    quantized, scales = hybrid.of_rows(rows, asymmetric=op.asymmetric_quantize_inputs)
    sums = _sums(op, quantized, weights.astype(np.float64)).astype(np.float32)
    y = sums * (scales[:, None] * hybrid.weight_scales(op.weights, 0))
    return _shaped(op, x, activate(y if bias is None else y + bias.reshape(-1), op.activation))


@reads(FullyConnected, *SIGNATURES)
def _rescaling(op: FullyConnected) -> Rescaling:
    return Rescaling.of(op.input, op.weights, op.output, 0, op.activation, any_zero=True)


def _sums(op: FullyConnected, x: Array, weights: Array) -> Array:
    """Add up the products of every row with every output's weights: [rows, o]."""
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError(f"weights format {op.weights_format.name} is not supported")
    return x.reshape(-1, weights.shape[1]) @ weights.T


def _shaped(op: FullyConnected, x: Array, y: Array) -> Array:
    """Give rows the input's leading axes, where the operator keeps them."""
    return y.reshape(*x.shape[:-1], y.shape[-1]) if op.keep_num_dims else y


def _arrays(op: FullyConnected, context: Context) -> Arrays | Declined:
    """Return a layer's arrays, Declined for weights in a layout that kernels do not know."""
    known = op.weights_format == FullyConnectedOptionsWeightsFormat.DEFAULT
    return arrays_of(op, context) if known else UNFIT


@native(FullyConnected, TensorType.FLOAT32)
def build(op: FullyConnected, context: Context) -> Built:
    """Run the layer as a convolution with windows of one pixel: rows are its pixels."""
    arrays = _arrays(op, context)
    if isinstance(arrays, Declined):
        return arrays
    x, weights, bias, y = arrays
    geometry = Geometry.of_rows(x.size // weights.shape[1], weights.shape[1])
    return FloatLayer(geometry, op.activation, x, y).convolution(weights[None, :, None], bias)


@native(FullyConnected, *hybrid.SIGNATURES)
def build_hybrid(op: FullyConnected, context: Context) -> Built:
    """Run the layer as a convolution whose images are the rows, each quantized on its own, see
    ``hybrid_layer``; or with weights of blocks, see ``layers.floats.blocks``.
    """
    if blocks_of(op.weights) is not None:
        return _build_blocks(op, context)
    arrays, scales = _arrays(op, context), accepted(hybrid.weight_scales, op.weights, 0)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(scales, Declined):
        return scales
    (x, weights, bias, y), asymmetric = arrays, op.asymmetric_quantize_inputs
    if may_overflow(weights.shape[1], asymmetric=asymmetric):
        return WIDE_SUMS
    rows, one = x.reshape(-1, 1, 1, weights.shape[1]), Side.of(1, 1, 1, 1, Padding.VALID)
    layer = HybridLayer(
        one, one, rows, y, activation=op.activation, scales=scales, asymmetric=asymmetric
    )
    return layer.convolution(hybrid.signed(weights)[None, :, None, None], bias)


def _build_blocks(op: FullyConnected, context: Context) -> Built:
    arrays, blocks = _arrays(op, context), accepted(Blockwise.given, op.weights)
    if isinstance(arrays, Declined):
        return arrays
    if blocks is None or isinstance(blocks, Declined):
        return blocks
    x, weights, bias, y = arrays
    outputs, n = weights.shape
    if takes(blocks) and pays(x.size // n, weights.size):
        layer = BlockLayer(x.reshape(-1, n), y.reshape(-1, outputs), op.activation)
        return layer.product(weights, blocks, bias)
    room(4 * weights.size, "weights as real numbers")
    real = blocks.decode(weights).astype(np.float32)
    geometry = Geometry.of_rows(x.size // n, n)
    return FloatLayer(geometry, op.activation, x, y).convolution(real[None, :, None], bias)


class _Quantized(NamedTuple):
    """A quantized layer as a convolution with windows of one pixel, rows its pixels."""

    sides: tuple[Side, Side]
    rows: Array
    filters: Array
    bias: Array | None
    y: Array
    to: Rescaling


def _quantized(op: FullyConnected, context: Context) -> _Quantized | Declined:
    arrays, to = _arrays(op, context), accepted(_rescaling, op)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    x, weights, bias, y = arrays
    rows = x.reshape(1, 1, -1, weights.shape[1])
    one, side = (Side.of(size, 1, 1, 1, Padding.VALID) for size in rows.shape[1:3])
    return _Quantized((one, side), rows, weights[None, :, None, None], bias, y, to)


@native(FullyConnected, *BYTES)
def build_integer(op: FullyConnected, context: Context) -> Built:
    """Run the layer as a convolution, see ``layers.int8.layer``."""
    q = _quantized(op, context)
    if isinstance(q, Declined):
        return q
    layer = IntegerLayer(*q.sides, q.rows, q.y, to=q.to)
    return layer.convolution(q.filters, q.bias, exact=True)


@native(FullyConnected, *SHORTS)
def build_short(op: FullyConnected, context: Context) -> Built:
    """Compute rows of 16 bits as a convolution, see ``layers.int16.layer``."""
    q = _quantized(op, context)
    if isinstance(q, Declined):
        return q
    layer = ShortLayer.of(q.sides, q.rows, q.y, q.to, Scaling.EXACT)
    return layer.convolution(q.filters, q.bias)


def _fields(op: FullyConnected, context: PortableContext) -> dict[str, Field]:
    """Write a layer's extents and tables for C."""
    _refuse_format(op)
    outputs, n = op.weights.dims
    return {
        "rows": element_count(op.input.dims) // n,
        "inputs": n,
        "outputs": outputs,
        "weights": context.constant(op.weights),
    }


def _refuse_format(op: FullyConnected) -> None:
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError(f"weights format {op.weights_format.name} has no C form")


@portable(FullyConnected, *INT8S, *INT8_BY_4, *UINT8S)
def integer_in_c(op: FullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer of bytes."""
    to, weights = _rescaling(op), context.constant(op.weights)
    bias = context.optional(op.bias)
    largest = check_sums(to, weights, bias, (1,))
    if to.dtype == TensorType.INT8 and to.weights_zeros.any():
        raise UnsupportedError(f"weights have zero point {to.weights_zero}; in C, 0 is needed")
    starts = -to.input_zero * to.centred_weights(weights, 0).astype(np.int64).sum(1)
    starts = starts if bias is None else starts + bias.reshape(-1)
    factors = np.array(np.broadcast_to(to.factors, len(weights)), np.float64)
    least, most = to.limits
    fields = _fields(op, context) | {"starts": starts, "factors": factors}
    fields |= _in_integers(factors, largest) | with_zeros(to, weights, 0)
    fields |= {"result_zero": to.result_zero, "least": least, "most": most}
    scratch = 8 * -(-op.weights.dims[1] // 4)
    kind = to.dtype.name.lower()
    call = CCall(f"luc_fully_connected_{kind}", fields, (op.input,), op.results, scratch)
    return [_packed(call, weights, context)]


def _packed(call: CCall, weights: Array, context: PortableContext) -> CCall:
    """Pack the weights of a layer, which unpacks few at a time where it has one row."""
    most = BLOCK if number_of(call.fields, "rows") > 1 else 0
    return with_packed_weights(call, weights, context, most=most)


def _in_integers(factors: Array, largest: int) -> dict[str, Field]:
    """Write factors as numbers of 31 bits, with as many places behind the steps as the largest sum
    leaves in 32 bits: 0 for none.
    """
    multipliers, shifts = quantize_multiplier(factors)
    up = max(0, min(31 - largest.bit_length(), 31 + int(shifts.min(initial=0))))
    bits = up - 1 - shifts
    return {"multipliers": multipliers, "bits": np.where(bits <= 30, bits, 0), "up": up}


@portable(FullyConnected, *INT16S)
def short_in_c(op: FullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer of halfwords."""
    to, weights, bias = _rescaling(op), context.constant(op.weights), context.optional(op.bias)
    kind, (least, most) = kind_of(to, weights, bias, (1,), wide=True), to.limits
    factors = np.array(np.broadcast_to(to.factors, len(weights)), np.float64)
    fields = _fields(op, context) | {"bias": bias, "factors": factors}
    fields |= {"least": least, "most": most}
    scratch = 8 * -(-op.weights.dims[1] // 4)
    call = CCall(f"luc_fully_connected_{kind}", fields, (op.input,), op.results, scratch)
    return [_packed(call, weights, context)]


@portable(FullyConnected, TensorType.FLOAT32)
def float_in_c(op: FullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer of floats, and an activation that does not only cut off."""
    within, after = as_limits(op.activation)
    fields = _fields(op, context) | {"bias": context.optional(op.bias)} | cut_off(within)

    def layer(y: Value) -> CCall:
        return CCall("luc_fully_connected_float", fields, (op.input,), (y,))

    return activated(after, op.results[0], layer)


@portable(FullyConnected, *BY_BYTES)
def hybrid_in_c(op: FullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer of floats with weights of bytes: rows are images of one pixel."""
    _refuse_format(op)
    blocks = Blockwise.given(op.weights)
    if blocks is not None:
        return _blocks_in_c(op, blocks, context)
    outputs, n = op.weights.dims
    rows = element_count(op.input.dims) // n
    x, y = (Value("row", TensorType.FLOAT32, (rows, 1, 1, size)) for size in (n, outputs))
    return hybrid_calls(
        op.input,
        op.results[0],
        windows_of(x, y, (1, 1), (1, 1), Padding.VALID),
        n,
        op.activation,
        context,
        weights=context.constant(op.weights).reshape(outputs, 1, 1, n),
        scales=hybrid.weight_scales(op.weights, 0),
        bias=context.optional(op.bias),
        asymmetric=op.asymmetric_quantize_inputs,
        together=True,
    )


def _blocks_in_c(op: FullyConnected, blocks: Blockwise, context: PortableContext) -> list[CCall]:
    """Call the layer of floats whose weights have a scale for each block."""
    within, after = as_limits(op.activation)
    fields = _fields(op, context) | {"bias": context.optional(op.bias)} | cut_off(within)
    fields |= {"size": blocks.size, "scales": blocks.scale}

    def layer(y: Value) -> CCall:
        call = CCall("luc_fully_connected_blocks", fields, (op.input,), (y,))
        return with_packed_weights(call, context.constant(op.weights), context, most=0)

    return activated(after, op.results[0], layer)
