"""TRANSPOSE_CONV kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.transpose_conv import TransposeConv, check_sizes
from luciole.ir.rules import agree, integers, padding_before
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference


@reference(TransposeConv, TensorType.FLOAT32)
def transpose_conv(
    op: TransposeConv, input_sizes: Array, filter: Array, x: Array, bias: Array | None
) -> Array:
    """Add up the filter's taps on a canvas large enough for all, and cut the result out of it."""
    sizes = check_sizes(integers(input_sizes, "input_sizes", 4), x.shape[0], filter.shape[0])
    agree("input channels", filter.shape[3], x.shape[3], "filter", "out_backprop")
    stride, kernel = (op.stride_h, op.stride_w), filter.shape[1:3]
    top, left = (
        padding_before(size, k, s, 1, op.padding)
        for size, k, s in zip(sizes[1:3], kernel, stride, strict=True)
    )
    canvas = _scatter(x, filter, stride, (top + sizes[1], left + sizes[2]))
    y = canvas[:, top : top + sizes[1], left : left + sizes[2]]
    return activate(y.copy() if bias is None else y + bias.reshape(-1), op.activation)


def _scatter(x: Array, filter: Array, stride: tuple[int, int], least: tuple[int, int]) -> Array:
    """The sums of all windows, unpadded; at least as large as ``least``."""
    (n, h, w, _), (o, kh, kw, _), (sh, sw) = x.shape, filter.shape, stride
    canvas = np.zeros((n, max(h * sh + kh, least[0]), max(w * sw + kw, least[1]), o), x.dtype)
    for i in range(kh):
        for j in range(kw):
            canvas[:, i : i + h * sh : sh, j : j + w * sw : sw] += x @ filter[:, i, j].T
    return canvas
