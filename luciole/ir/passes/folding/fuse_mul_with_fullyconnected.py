"""Fold a multiplication into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Mul, on_request=True)
def fuse_mul_with_fullyconnected(graph: Graph, op: Mul) -> bool:
    """MUL(FULLY_CONNECTED(x, w, b), m) -> FULLY_CONNECTED(x, w m, b m).

    m has a number for each channel. ``fuse_batch_norm`` does so for all layers.
    """
    return fuse_into_layer(graph, op, (FullyConnected,))
