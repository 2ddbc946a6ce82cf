"""CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.conv_2d import Conv2D, check_groups
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference
from luciole.kernels.windows import patches


@reference(Conv2D, TensorType.FLOAT32)
def conv_2d(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window, group by group, in float32."""
    o, kh, kw, depth = filter.shape
    check_groups(x.shape[3], depth, o)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    groups = x.shape[3] // depth
    n, h, w = windows.shape[:3]
    columns = windows.reshape(n, h, w, groups, depth, kh, kw)
    weights = filter.reshape(groups, o // groups, kh, kw, depth).transpose(0, 4, 2, 3, 1)
    parts = [np.tensordot(columns[:, :, :, g], weights[g], axes=3) for g in range(groups)]
    y = np.concatenate(parts, axis=-1)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)
