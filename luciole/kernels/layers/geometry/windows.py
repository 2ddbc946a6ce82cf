"""Sliding windows over images, for convolutions and pools."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from luciole.ir import Array
from luciole.ir.rules import padding_before, window
from luciole.ir.value import element_count
from luciole.kernels.core.limits import room
from luciole.schema.enums import Padding


def patches(
    x: Array,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: Padding,
    dilation: tuple[int, int] = (1, 1),
    fill: float = 0,
) -> Array:
    """View every window of an NHWC image as [n, out_h, out_w, c, kernel_h, kernel_w].

    ``stride``, ``kernel`` and ``dilation`` are (height, width); SAME pads with ``fill``.
    """
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    outs, pads = [], []
    for size, k, s, d, span in zip(x.shape[1:3], kernel, stride, dilation, spans, strict=True):
        out = window(size, k, s, d, padding) or 0
        before = padding_before(size, k, s, d, padding)
        pads.append((before, max(max(out - 1, 0) * s + span - size - before, 0)))
        outs.append(out)
    extents = [n + sum(pad) for n, pad in zip(x.shape[1:3], pads, strict=True)]
    room(element_count((len(x), *extents, x.shape[3])) * x.itemsize, "a padded image")
    padded = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=fill)
    view = sliding_window_view(padded, spans, axis=(1, 2))
    view = view[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    return view[:, : outs[0], : outs[1]]
