"""INSTANCE_NORM kernels."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import interleaved, norms, strided
from luciole.kernels.jit import LANES
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.images import cut_off


@reference(InstanceNorm, TensorType.FLOAT32)
def instance_norm(op: InstanceNorm, x: Array, gamma: Array, beta: Array) -> Array:
    """Normalize each channel of each image, in double precision."""
    pixels, last = ((1, 2), x.shape[3:]) if x.ndim == 4 else ((2,), (x.shape[1], 1))
    factor, shift = (
        np.broadcast_to(a, last[:1]).astype(np.float64).reshape(last) for a in (gamma, beta)
    )
    wide, count = x.astype(np.float64), max(math.prod(x.shape[axis] for axis in pixels), 1)
    centred = wide - wide.sum(axis=pixels, keepdims=True) / count
    variance = (centred * centred).sum(axis=pixels, keepdims=True) / count
    y = factor * centred / np.sqrt(variance + op.epsilon) + shift
    return activate(y.astype(x.dtype), op.activation)


@native(InstanceNorm, TensorType.FLOAT32)
def build(op: InstanceNorm, context: Context) -> Built:
    """Normalize rows where channels stand before their elements, else columns."""
    if op.activation not in LIMITS:
        return None
    x, gamma, beta = context.triple
    is_image = x.ndim == 4
    channels = x.shape[3 if is_image else 1]
    count = math.prod(x.shape[1:3]) if is_image else x.shape[2]
    few, memory = is_image and channels < LANES <= count, Memory()
    blocks = -(-channels // LANES) if is_image else channels
    low, high = LIMITS[op.activation]
    record = interleaved.InterleavedRecord(
        begin=0,
        end=x.shape[0] * (1 if few else blocks) if x.size else 0,
        y=reach(context.results[0], 4 * x.size),
        x=reach(x, 4 * x.size),
        scale=reach(gamma, 4 * gamma.size),
        shift=reach(beta, 4 * beta.size),
        count=count,
        channels=channels,
        blocks=blocks,
        scale_step=4 * (gamma.size > 1),
        shift_step=4 * (beta.size > 1),
        epsilon=op.epsilon,
        low=low,
        high=high,
        room=memory.scratch(x.shape[0], channels, 2 * interleaved.ROOM) if few else 0,
    )
    bounded = int(np.isfinite([low, high]).any())
    by_columns = interleaved.images if few else norms.columns
    kernel = by_columns(bounded) if is_image else norms.rows(bounded)
    return strided.step(kernel, record, x.size, memory)


@portable(InstanceNorm, TensorType.FLOAT32)
def in_c(op: InstanceNorm, context: PortableContext) -> list[CCall]:
    """Call the normalization along pixels."""
    dims = op.input.dims
    is_image = len(dims) == 4
    outer, pixels, inner = (dims[:1], dims[1:3], dims[3:]) if is_image else (dims[:2], dims[2:], ())
    channels = dims[3] if is_image else dims[1]
    outer_count, count, inner_count = map(element_count, (outer, pixels, inner))
    fields: dict[str, Field] = {"outer": outer_count, "count": count, "inner": inner_count}
    fields |= {"channels": channels, "inside": int(is_image), "epsilon": op.epsilon}
    fields |= cut_off(op.activation)
    for name, value in (("scale", op.gamma), ("shift", op.beta)):
        fields[name] = np.broadcast_to(context.constant(value), channels)
    return [CCall("luc_normalize", fields, (op.input,), op.results)]
