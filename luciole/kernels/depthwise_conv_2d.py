"""DEPTHWISE_CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D, check_multiple
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference
from luciole.kernels.windows import patches


@reference(DepthwiseConv2D, TensorType.FLOAT32)
def depthwise_conv_2d(op: DepthwiseConv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window of a channel, once for each of its filters, in float32."""
    _, kh, kw, outputs = filter.shape
    channels = x.shape[3]
    check_multiple(channels, outputs)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    weights = filter.reshape(kh, kw, channels, outputs // channels)
    y = np.einsum("nhwcij,ijcm->nhwcm", windows, weights).reshape(*windows.shape[:3], outputs)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)
