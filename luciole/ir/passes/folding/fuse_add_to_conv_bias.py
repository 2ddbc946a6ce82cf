"""Fold an addition into the convolution behind it."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.rewriting.fronts import channels_in_front
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer, shift_layer
from luciole.schema.enums import Padding


@rewrite(Conv2D, DepthwiseConv2D)
def fuse_add_to_conv_bias(graph: Graph, op: Conv2D | DepthwiseConv2D) -> bool:
    """CONV_2D(ADD(x, a), w, b) -> CONV_2D(x, w, b + w a): without padding, which is 0 behind ADD.

    a has a number for each channel of x.
    """
    add = made_by(op.input, Add)
    pair = channels_in_front(add) if add is not None and is_plain(add) else None
    weights = op.filter.data
    if pair is None or weights is None or not is_plain_layer(op) or not _is_unpadded(op):
        return False
    value, shift = pair
    sums = weights.astype(np.float64).sum(axis=(1, 2))
    if isinstance(op, DepthwiseConv2D):
        moved = sums[0] * np.repeat(shift, sums.shape[1] // len(shift))
    elif sums.shape[1] == len(shift):
        moved = sums @ shift
    else:
        return False
    shift_layer(graph, op, moved.astype(np.float32))
    op.set_operand(0, value)
    return True


def _is_unpadded(op: Conv2D | DepthwiseConv2D) -> bool:
    """Return whether no window reaches over a border."""
    return op.padding == Padding.VALID or op.filter.dims[1:3] == (1, 1)
