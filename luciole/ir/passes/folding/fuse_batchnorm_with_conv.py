"""Fold a batch normalization into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Mul, Add, on_request=True)
def fuse_batchnorm_with_conv(graph: Graph, op: Mul | Add) -> bool:
    """ADD(MUL(CONV_2D(x, w, b), m), a) -> CONV_2D(x, w m, b m + a).

    ``fuse_batch_norm`` does so for all layers.
    """
    return fuse_into_layer(graph, op, (Conv2D,))
