"""Fold a batch normalization into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Mul, Add)
def fuse_batchnorm_with_tconv(graph: Graph, op: Mul | Add) -> bool:
    """ADD(MUL(TRANSPOSE_CONV(n, w, x, b), m), a) -> TRANSPOSE_CONV(n, w m, x, b m + a)."""
    return fuse_into_layer(graph, op, (TransposeConv,))
