"""Fold an addition into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Add, on_request=True)
def fuse_add_with_conv(graph: Graph, op: Add) -> bool:
    """ADD(CONV_2D(x, w, b), a) -> CONV_2D(x, w, b + a): a has a number for each channel.

    ``fuse_batch_norm`` does so for all layers.
    """
    return fuse_into_layer(graph, op, (Conv2D,))
