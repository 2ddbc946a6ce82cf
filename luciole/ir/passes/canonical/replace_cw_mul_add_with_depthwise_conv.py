"""Let a depthwise convolution multiply and add by channel."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.fronts import channels_in_front
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of, is_plain, made_by, with_constant
from luciole.schema.enums import Padding


@rewrite(Add, on_request=True)
def replace_cw_mul_add_with_depthwise_conv(graph: Graph, op: Add) -> bool:
    """ADD(MUL(x, m), a) -> DEPTHWISE_CONV_2D(x, m, a): m, a have a number for each channel."""
    outer = with_constant(op)
    mul = made_by(outer[0], Mul) if outer is not None else None
    inner = channels_in_front(mul) if mul is not None and is_plain(mul) else None
    shift = None if outer is None else constant_of(outer[1])
    if inner is None or shift is None or len(op.output.shape) != 4 or not is_float(op.output):
        return False
    value, factor = inner
    channels = len(factor)
    fits = shift.size == 1 or (shift.size == channels and shift.shape[-1] == channels)
    if not fits or value.shape != op.output.shape:
        return False
    filter = constant(graph, f"{op.name}/factor", factor.reshape(1, 1, 1, channels))
    bias = constant(graph, f"{op.name}/shift", np.broadcast_to(shift.reshape(-1), (channels,)))
    layer = DepthwiseConv2D(value, filter, bias, padding=Padding.VALID, activation=op.activation)
    layer.stride_w = layer.stride_h = layer.depth_multiplier = 1
    become(graph, op, layer)
    return True
