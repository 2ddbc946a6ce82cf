"""FULLY_CONNECTED kernels."""

from __future__ import annotations

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat


@reference(FullyConnected, TensorType.FLOAT32)
def fully_connected(op: FullyConnected, x: Array, weights: Array, bias: Array | None) -> Array:
    """One matrix product over all rows."""
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise UnsupportedError(f"weights format {op.weights_format.name} is not supported")
    y = x.reshape(-1, weights.shape[1]) @ weights.T
    y = activate(y if bias is None else y + bias, op.activation)
    return y.reshape(*x.shape[:-1], -1) if op.keep_num_dims else y
