"""CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.conv_2d import Conv2D, check_groups
from luciole.kernels.activation import activate
from luciole.kernels.hybrid import quantize_rows, weight_scale
from luciole.kernels.registry import reference
from luciole.kernels.windows import patches


@reference(Conv2D, TensorType.FLOAT32)
def conv_2d(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window, group by group, in float32."""
    y = _sums(op, x, filter)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@reference(
    Conv2D,
    (TensorType.FLOAT32, TensorType.INT8),
    (TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32),
)
def conv_2d_hybrid(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """int8 weights under float activations: each image is quantized, sums are integers, as in
    TFLite.
    """
    quantized, scales = quantize_rows(x)
    sums = _sums(op, quantized, filter.astype(np.float64))  # exact: below 2^53
    factors = scales * weight_scale(op.filter)
    y = sums.astype(np.float32) * factors.reshape(-1, 1, 1, 1)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


def _sums(op: Conv2D, x: Array, filter: Array) -> Array:
    """The products of every window with every filter: [n, out_h, out_w, o]."""
    o, kh, kw, depth = filter.shape
    check_groups(x.shape[3], depth, o)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    groups = x.shape[3] // depth
    n, h, w = windows.shape[:3]
    columns = windows.reshape(n, h, w, groups, depth, kh, kw)
    weights = filter.reshape(groups, o // groups, kh, kw, depth).transpose(0, 4, 2, 3, 1)
    parts = [np.tensordot(columns[:, :, :, g], weights[g], axes=3) for g in range(groups)]
    return np.concatenate(parts, axis=-1)
