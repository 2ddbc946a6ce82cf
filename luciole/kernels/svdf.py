"""SVDF kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.svdf import SVDF
from luciole.ir.quantization import per_tensor
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.registry import reference
from luciole.kernels.fixed_point.arithmetic import multiply, quantize_multiplier, requantized
from luciole.kernels.recurrent.operands import named, named_weights
from luciole.schema.enums import ActivationFunctionType

INT8, INT16, INT32 = TensorType.INT8, TensorType.INT16, TensorType.INT32


@reference(SVDF, TensorType.FLOAT32)
def svdf(op: SVDF, *operands: Array | None) -> Array:
    """Forget the oldest sums, add the newest, weigh all; the state operand is overwritten."""
    given = named(op, operands)
    weights = named_weights(op, given, op.asymmetric_quantize_inputs)
    x, time = given["input"], weights["weights_time"].vector()
    state = _remembered(given["state"], time, weights["weights_feature"](x))
    y = _units(op, (state * time).sum(axis=2))
    if op.bias is not None:
        y += given["bias"]
    return activate(y, op.activation)


def _remembered(state: Array, time: Array, newest: Array) -> Array:
    """Shift the state [batch, filters, memory]: it forgets the oldest sums for the newest."""
    sums = state.reshape(len(newest), *time.shape)
    sums[:, :, :-1] = sums[:, :, 1:].copy()
    sums[:, :, -1] = newest
    return sums


def _units(op: SVDF, weighed: Array) -> Array:
    """Sum the filters of each unit [batch, units]."""
    batch, filters = weighed.shape
    return np.asarray(weighed.reshape(batch, filters // op.rank_, op.rank_).sum(axis=2))


@reference(SVDF, (INT8, INT32, INT16), (INT8, INT16))
def integer_svdf(op: SVDF, *operands: Array | None) -> Array:
    """Compute in integers, with TFLite's fixed-point factors: the state is symmetric INT16.

    As in TFLite the only activation is RELU, which the result's range stands for.
    """
    given = named(op, operands)
    x, feature, time = given["input"], given["weights_feature"], given["weights_time"]
    if feature.dtype != np.int8 or time.dtype != np.int16:
        raise UnsupportedError(f"weights are {feature.dtype} and {time.dtype}, not int8 and int16")
    if op.activation != ActivationFunctionType.RELU:
        raise UnsupportedError(f"fused activation {op.activation.name} is not RELU")
    into, out, zero_points = _factors(op)
    limits = np.iinfo(np.int16)
    products = (x.astype(np.int64) - zero_points[0]) @ feature.T.astype(np.int64)
    newest = np.clip(multiply(products.astype(np.int32), *into), limits.min, limits.max)
    state = _remembered(given["state"], time, newest)
    y = _units(op, (state.astype(np.int64) * time).sum(axis=2))
    y += given["bias"] if op.bias is not None else 0
    scaled = multiply(y.astype(np.int32), *out)
    return requantized(scaled, zero_points[1], (-128, 127), INT8)


Factor = tuple[Array, Array]
"""A multiplier and a shift."""


def _factors(op: SVDF) -> tuple[Factor, Factor, tuple[int, int]]:
    """Return the factors from products to the state and from there to the result, and the zero
    points of operand and result. Scales are multiplied in single precision, as in TFLite.
    """
    scale, zero_point = per_tensor(op.input, "input")
    names = ("weights_feature", "weights_time", "state")
    feature, time, state = (
        per_tensor(v, n)[0] for n, v in op.given_operands().items() if n in names
    )
    result, result_zero = per_tensor(op.output, "the result")
    into = quantize_multiplier(np.float64(scale * feature / state))
    out = quantize_multiplier(np.float64(state * time / result))
    return into, out, (zero_point, result_zero)
