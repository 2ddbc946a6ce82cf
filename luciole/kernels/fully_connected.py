"""FULLY_CONNECTED kernels."""

from __future__ import annotations

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.kernels.activation import activate
from luciole.kernels.float_layer import Geometry, Layer, fits
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat


@reference(FullyConnected, TensorType.FLOAT32)
def fully_connected(op: FullyConnected, x: Array, weights: Array, bias: Array | None) -> Array:
    """One matrix product over all rows."""
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError(f"weights format {op.weights_format.name} is not supported")
    y = x.reshape(-1, weights.shape[1]) @ weights.T
    y = activate(y if bias is None else y + bias, op.activation)
    return y.reshape(*x.shape[:-1], -1) if op.keep_num_dims else y


@native(FullyConnected, TensorType.FLOAT32)
def build(op: FullyConnected, context: Context) -> NativeStep | None:
    """Rows are the pixels of a convolution with windows of one pixel."""
    x, weights, bias = (*context.operands, None)[:3]
    (y,) = context.results
    if x is None or weights is None or not fits(op.activation, x, y, *op.operands[1:]):
        return None
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return None
    geometry = Geometry.of_rows(x.size // weights.shape[1], weights.shape[1])
    return Layer(geometry, op.activation, x, y).convolution(weights[None, :, None], bias)
