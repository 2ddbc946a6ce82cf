"""Let one dense layer give the sum of two."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.edits import become, constant, copy_like, is_private
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer


@rewrite(Add)
def fuse_horizontal_fc_layers(graph: Graph, op: Add) -> bool:
    """ADD(FULLY_CONNECTED(x, v), FULLY_CONNECTED(x, w)) -> FULLY_CONNECTED(x, v + w)."""
    first, second = made_by(op.x, FullyConnected), made_by(op.y, FullyConnected)
    if first is None or second is None or first is second or not _are_alike(first, second):
        return False
    one, other = first.weights.data, second.weights.data
    if one is None or other is None or one.shape != other.shape:
        return False
    weights = copy_like(graph, first.weights, one + other)
    biases = [b.data for b in (first.bias, second.bias) if b is not None and b.data is not None]
    total = sum(data.reshape(-1) for data in biases)
    bias = constant(graph, f"{op.name}/bias", total) if biases else None
    new = first.clone([first.input, weights, *([bias] if bias is not None else [None])])
    assert isinstance(new, FullyConnected), "it is a copy"
    new.activation = op.activation
    become(graph, op, new)
    return True


def _are_alike(first: FullyConnected, second: FullyConnected) -> bool:
    """Return whether two dense layers of one input are for nothing but their sum."""
    return first.input is second.input and all(
        is_plain_layer(layer)
        and is_plain(layer)
        and is_private(layer.output)
        and layer.keep_num_dims == first.keep_num_dims
        for layer in (first, second)
    )
