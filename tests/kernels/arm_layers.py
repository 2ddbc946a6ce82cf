"""Layers of bytes that are compiled for Arm."""

from __future__ import annotations

from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from tests.ops.int8_support import UINT8, Layer, convolution, layer


def layers() -> list[Layer]:
    """One for each way to add products: of windows, of lines of taps, of channels alone, and of
    weights whose zero point does not fit into a byte.
    """
    return [
        layer(FullyConnected, (3, 200), (40, 200), 1),
        layer(Conv2D, (1, 5, 6, 3), (4, 3, 3, 3), 2, **convolution()),
        layer(DepthwiseConv2D, (1, 7, 5, 64), (1, 3, 3, 64), 3, **convolution()),
        layer(FullyConnected, (2, 30), (20, 30), 4, UINT8, channels=False, weights_zero=129),
    ]
