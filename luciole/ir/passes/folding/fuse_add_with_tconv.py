"""Fold an addition into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Add)
def fuse_add_with_tconv(graph: Graph, op: Add) -> bool:
    """ADD(TRANSPOSE_CONV(n, w, x, b), a) -> TRANSPOSE_CONV(n, w, x, b + a).

    a has a number for each channel.
    """
    return fuse_into_layer(graph, op, (TransposeConv,))
