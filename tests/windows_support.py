"""Convolutions of one layer over images that suit no kernel well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler.side_by_side import SideBySide
from tests.support import one_op

Window = tuple[tuple[int, ...], tuple[int, ...], int, int, Padding]
"""Image, filters, stride, dilation and padding."""

WINDOWS: list[Window] = [
    ((1, 7, 9, 4), (6, 3, 2, 4), 1, 1, Padding.SAME),
    ((2, 8, 7, 4), (6, 3, 3, 2), 2, 1, Padding.VALID),
    ((1, 9, 9, 2), (4, 3, 3, 2), 1, 2, Padding.SAME),
    ((1, 5, 5, 3), (2, 5, 5, 3), 3, 1, Padding.SAME),
    ((1, 6, 8, 9), (3, 3, 4, 9), 1, 1, Padding.SAME),
]
WINDOWED = [(Conv2D, 1), (DepthwiseConv2D, 1), (DepthwiseConv2D, 2)]
"""Classes, and filters for each channel."""


def windowed(cls: type[Conv2D | DepthwiseConv2D], times: int, window: Window) -> Model:
    """Make a float layer; a depthwise one has ``times`` filters for each channel."""
    image, filters, stride, dilation, padding = window
    rng = np.random.default_rng(0)
    shape = filters if cls is Conv2D else (1, *filters[1:3], times * image[3])
    outputs = filters[0] if cls is Conv2D else times * image[3]
    weights, bias = rng.normal(size=shape) / 5, rng.normal(size=outputs)
    model = one_op(
        cls,
        [np.zeros(image, np.float32), weights.astype(np.float32), bias.astype(np.float32)],
        (1, 2),
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
        padding=padding,
        activation=Act.RELU6,
    )
    (layer,) = model.graph.ops
    if isinstance(layer, DepthwiseConv2D):
        layer.depth_multiplier = times
    return model


def all_windowed(make: Callable[[Model], Model] = lambda model: model) -> Model:
    """Put layers of all classes and windows beside each other, each changed by ``make``."""
    every = SideBySide()
    for cls, times in WINDOWED:
        for window in WINDOWS:
            every.join(make(windowed(cls, times, window)), [np.zeros(window[0])])
    return every.model
