"""Fold a multiplication into the convolution behind it."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rewriting.fronts import channels_in_front
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer, set_weights, weights_of_layer


@rewrite(Conv2D, DepthwiseConv2D, TransposeConv)
def fuse_mul_to_conv_weights(graph: Graph, op: Conv2D | DepthwiseConv2D | TransposeConv) -> bool:
    """CONV_2D(MUL(x, m), w, b) -> CONV_2D(x, w m, b): m has a number for each channel of x."""
    slot = 2 if isinstance(op, TransposeConv) else 0
    value, weights = op.operands[slot], weights_of_layer(op)
    mul = made_by(value, Mul) if value is not None else None
    pair = channels_in_front(mul) if mul is not None and is_plain(mul) else None
    if pair is None or weights is None or weights.data is None or not is_plain_layer(op):
        return False
    source, factor = pair
    if isinstance(op, DepthwiseConv2D):
        factor = np.repeat(factor, weights.dims[3] // len(factor))
    if weights.dims[3] != len(factor):
        return False
    set_weights(graph, op, weights.data * factor)
    op.set_operand(slot, source)
    return True
