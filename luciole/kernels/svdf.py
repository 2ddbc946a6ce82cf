"""SVDF kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import multiply, quantize_multiplier, requantized
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.svdf import SVDF
from luciole.ir.quantization import per_tensor
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.fixed_point.scalars import factor_fields
from luciole.kernels.jit import LANES
from luciole.kernels.layers.floats.layer import FloatLayer, Geometry
from luciole.kernels.layers.geometry.sequence import one_by_one
from luciole.kernels.layers.int8.byte_layer import Side
from luciole.kernels.layers.int8.hybrid_layer import WIDE_SUMS, HybridLayer, may_overflow
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.recurrent import layers_in_c, svdf_steps
from luciole.kernels.recurrent.byte_products import Matrix, room_for_row
from luciole.kernels.recurrent.operands import Arrays, Weights, named, named_weights
from luciole.schema.enums import ActivationFunctionType, Padding

INT8, INT16, INT32 = TensorType.INT8, TensorType.INT16, TensorType.INT32


@reference(SVDF, TensorType.FLOAT32)
def svdf(op: SVDF, *operands: Array | None) -> Array:
    """Forget the oldest sums, add the newest, weigh all; the state operand is overwritten."""
    arrays = named(op, operands)
    weights = named_weights(op, arrays, op.asymmetric_quantize_inputs)
    x, time = arrays["input"], weights["weights_time"].vector()
    state = _remembered(arrays["state"], time, weights["weights_feature"](x))
    y = _units(op, (state * time).sum(axis=2))
    if op.bias is not None:
        y += arrays["bias"]
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
    arrays = named(op, operands)
    x, feature, time = arrays["input"], arrays["weights_feature"], arrays["weights_time"]
    if feature.dtype != np.int8 or time.dtype != np.int16:
        raise UnsupportedError(f"weights are {feature.dtype} and {time.dtype}, not int8 and int16")
    if op.activation != ActivationFunctionType.RELU:
        raise UnsupportedError(f"fused activation {op.activation.name} is not RELU")
    into, out, zero_points = _factors(op)
    limits = np.iinfo(np.int16)
    products = (x.astype(np.int64) - zero_points[0]) @ feature.T.astype(np.int64)
    newest = np.clip(
        multiply(products.astype(np.int32), *quantize_multiplier(into)), limits.min, limits.max
    )
    state = _remembered(arrays["state"], time, newest)
    y = _units(op, (state.astype(np.int64) * time).sum(axis=2))
    y += arrays["bias"] if op.bias is not None else 0
    results = multiply(y.astype(np.int32), *quantize_multiplier(out))
    return requantized(results, zero_points[1], (-128, 127), INT8)


def _factors(op: SVDF) -> tuple[np.float64, np.float64, tuple[int, int]]:
    """Return the factors from products to the state and from there to the result, and the zero
    points of operand and result. Scales are multiplied in single precision, as in TFLite.
    """
    scale, zero_point = per_tensor(op.input, "input")
    names = ("weights_feature", "weights_time", "state")
    feature, time, state = (
        per_tensor(v, n)[0] for n, v in op.given_operands().items() if n in names
    )
    result, result_zero = per_tensor(op.output, "the result")
    into, out = (np.float64(x) for x in (scale * feature / state, state * time / result))
    return into, out, (zero_point, result_zero)


NONE = ActivationFunctionType.NONE
MOST_VECTORS = 8
"""Vectors of filters whose sums are kept in registers at a time."""


def _constant(op: SVDF) -> bool:
    """Return whether all is constant that compiled kernels pack."""
    names = ("weights_feature", "weights_time", "bias")
    return all(value.is_constant for name, value in op.given_operands().items() if name in names)


def _empty(arrays: Arrays, y: Array) -> bool:
    """Return whether there is nothing to compute, or to compute from."""
    return not all(array.size for array in (y, arrays["input"], arrays["weights_time"]))


@native(SVDF, TensorType.FLOAT32)
def build(op: SVDF, context: Context) -> Built:
    """Compute the newest sums as a FULLY_CONNECTED does, then remember and weigh them."""
    arrays, (y,) = named(op, context.operands), context.results
    weights = accepted(named_weights, op, arrays, op.asymmetric_quantize_inputs)
    if isinstance(weights, Declined):
        return weights
    if not _constant(op) or op.activation not in LIMITS or _empty(arrays, y):
        return None
    newest = placed(np.zeros((len(y), op.rank_ * y.shape[1]), np.float32))
    feature = _newest_sums(weights["weights_feature"], arrays["input"], newest)
    if not isinstance(feature, NativeStep):
        return feature
    bias = arrays.get("bias", np.zeros(y.shape[1], np.float32))
    low, high = LIMITS[op.activation]
    memory = Memory([newest])
    record = svdf_steps.FloatRecord(
        **_memory_fields(op, arrays, y, newest, memory),
        time=memory.keep(weights["weights_time"].vector(), *_filters(op, arrays, y)),
        bias=memory.keep(bias, y.shape[1]),
        low=low,
        high=high,
    )
    return one_by_one(feature, memory.step(svdf_steps.float_memory.address, record))


def _newest_sums(feature: Weights, x: Array, newest: Array) -> Built:
    """Make the step of the sums [batch, filters] of inputs; Declined where they may be
    too large.
    """
    filters, inputs = feature.array.shape
    if feature.scale is None:
        layer = FloatLayer(Geometry.of_rows(len(x), inputs), NONE, x, newest)
        return layer.convolution(feature.array[None, :, None], None)
    if may_overflow(inputs, asymmetric=feature.asymmetric):
        return WIDE_SUMS
    one, rows = Side.of(1, 1, 1, 1, Padding.VALID), x.reshape(-1, 1, 1, inputs)
    scales, asymmetric = np.array([feature.scale]), feature.asymmetric
    hybrid = HybridLayer(
        one, one, rows, newest, activation=NONE, scales=scales, asymmetric=asymmetric
    )
    weights = feature.array.astype(np.int8).reshape(1, filters, 1, 1, inputs)
    return hybrid.convolution(weights, None)


def _filters(op: SVDF, arrays: Arrays, y: Array) -> tuple[int, int]:
    """Return how many filters kernels walk, and how much each remembers."""
    return op.rank_ * y.shape[1], arrays["weights_time"].shape[1]


def _memory_fields(
    op: SVDF, arrays: Arrays, y: Array, newest: Array, memory: Memory
) -> dict[str, int]:
    """Return the fields of all kernels for batches, units and states."""
    (batches, units), steps = y.shape, arrays["weights_time"].shape[1]
    state, size = arrays["state"], arrays["state"].itemsize * op.rank_ * units * steps
    return {
        "batches": batches,
        "units": units,
        "rank": op.rank_,
        "memory": steps,
        "y": reach(y, y.nbytes // batches, turns(batches, y.nbytes // batches)),
        "state": reach(state, size, turns(batches, size)),
        "newest": reach(newest, newest.nbytes),
    }


@native(SVDF, (INT8, INT32, INT16), (INT8, INT16))
def build_integer(op: SVDF, context: Context) -> Built:
    """Compute the newest sums, remember and weigh them, row by row."""
    arrays, (y,) = named(op, context.operands), context.results
    factors, memory = accepted(_factors, op), Memory()
    if isinstance(factors, Declined):
        return factors
    x, feature, time = arrays["input"], arrays["weights_feature"], arrays["weights_time"]
    plain = _constant(op) and feature.dtype == np.int8 and time.dtype == np.int16
    rectified = op.activation == ActivationFunctionType.RELU
    if not (plain and rectified) or _empty(arrays, y):
        return None
    into, out, (zero_point, result_zero) = factors
    matrix, scaling = Matrix.of(feature, None, zero_point, into), accepted(quantize_multiplier, out)
    if isinstance(scaling, Declined):
        return scaling
    if isinstance(matrix, Declined):
        return matrix
    filters, inputs = y.shape[1] * op.rank_, x.shape[1]
    matrix.check(filters, inputs)
    vectors = min(-(-filters // LANES), MOST_VECTORS)
    blocks = -(-filters // (vectors * LANES))
    newest = placed(np.zeros((blocks, vectors * LANES), np.int32))
    memory.arrays.append(newest)
    bias = arrays.get("bias", np.zeros(y.shape[1], np.int32))
    record = svdf_steps.IntegerRecord(
        **_memory_fields(op, arrays, y, newest, memory),
        **factor_fields("out", scaling),
        time=memory.keep(time, *_filters(op, arrays, y)),
        bias=memory.keep(bias, y.shape[1]),
        x=reach(x, inputs, turns(len(x), inputs)),
        inputs=inputs,
        copy=room_for_row(inputs, memory),
        matrix=matrix.keep(vectors, memory),
        zero=result_zero,
    )
    return memory.step(svdf_steps.integer_memory(vectors).address, record)


portable(SVDF, TensorType.FLOAT32)(layers_in_c.float_svdf)


@portable(SVDF, (INT8, INT32, INT16), (INT8, INT16))
def integer_in_c(op: SVDF, context: PortableContext) -> list[CCall]:
    """Call the layer of bytes."""
    into, out, zero_points = _factors(op)
    return layers_in_c.integer_svdf(op, context, into, out, zero_points)
