"""Fold an addition into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.scaling import fuse_into_layer


@rewrite(Add, on_request=True)
def fuse_add_with_fully_connected(graph: Graph, op: Add) -> bool:
    """ADD(FULLY_CONNECTED(x, w, b), a) -> FULLY_CONNECTED(x, w, b + a).

    a has a number for each channel. ``fuse_batch_norm`` does so for all layers.
    """
    return fuse_into_layer(graph, op, (FullyConnected,))
