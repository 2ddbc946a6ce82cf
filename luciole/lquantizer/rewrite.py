"""Put learned levels into a model: a dense layer becomes LQ_FULLY_CONNECTED."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Model, Value, codes
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.passes.fuse_activation import fuse_activation
from luciole.ir.passes.remove_dead import remove_dead, remove_dead_buffers


def replace_layer(
    op: FullyConnected, input_basis: NDArray[np.float64], weight_basis: NDArray[np.float64]
) -> tuple[LQFullyConnected, Value]:
    """Replace a dense layer by one with the learned bases, [kx] for its input and [o, kw] for its
    weights.

    Returns the new operator and the tensor that took the old result's place and name.
    """
    graph, weights = op.graph, op.weights.data
    assert graph is not None, "a layer to replace is part of a graph"
    assert weights is not None, "a layer to replace has constant weights"
    scales = weight_basis.astype(np.float32)
    new = LQFullyConnected(
        _rows(graph, op, weights.shape[1]),
        _constant(graph, op, "input_scales", input_basis.astype(np.float32)),
        _constant(graph, op, "weights_scales", scales),
        _constant(graph, op, "weights_binary", encode_weights(weights, scales)),
        op.bias,
        hidden_size=weights.shape[1],
        activation=op.activation,
    )
    graph.insert_before(op, new, graph.unique_name(f"{op.name}/lq"))
    result = _shaped_like(graph, op, new)
    name = op.name
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name
    return new, result


def _shaped_like(graph: Graph, op: FullyConnected, new: LQFullyConnected) -> Value:
    """The new operator's result in the old one's shape, through a RESHAPE where they differ."""
    if len(new.output.shape) == len(op.output.shape):
        return new.output
    extents = np.array([-1, new.output.shape[-1] or 0], np.int32)
    reshape = Reshape(
        new.output, _constant(graph, op, "shape", extents), new_shape=tuple(extents.tolist())
    )
    return graph.insert_after(new, reshape, graph.unique_name(f"{op.name}/shaped")).output


def set_input_basis(op: LQFullyConnected, basis: NDArray[np.float64]) -> None:
    """Give a replaced layer another input basis."""
    op.input_scales.set_data(basis.astype(np.float32))


def encode_weights(weights: NDArray[np.float32], basis: NDArray[np.float32]) -> NDArray[np.int32]:
    """The packed sign planes [o, kw, ceil(n / 32)] of weights [o, n]: each takes its row's nearest
    level.
    """
    levels, order = codes.levels(basis)
    index = codes.encode_rows(weights, codes.thresholds(levels))
    return codes.planes(np.take_along_axis(order, index, axis=1), basis.shape[1])


def finish(model: Model) -> None:
    """Let the new layers apply the activations behind them, and drop what nothing uses any more."""
    for graph in model.graphs:
        fuse_activation(graph)
        remove_dead(graph)
    remove_dead_buffers(model)


def _rows(graph: Graph, op: FullyConnected, n: int) -> Value:
    """The layer's input with one row of n in the last axis, as the new operator wants it."""
    if op.input.shape and op.input.shape[-1] == n:
        return op.input
    extents = np.array([-1, n], np.int32)
    reshape = Reshape(op.input, _constant(graph, op, "rows", extents), new_shape=(-1, n))
    return graph.insert_before(op, reshape, graph.unique_name(f"{op.name}/rows_of_input")).output


def _constant(graph: Graph, op: FullyConnected, what: str, array: Array) -> Value:
    return graph.add_constant(graph.unique_name(f"{op.name}/{what}"), array)
