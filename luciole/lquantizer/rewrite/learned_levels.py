"""Put learned levels into a model: a dense layer becomes LQ_FULLY_CONNECTED, a convolution
LQ_CONV_2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Model, Value
from luciole.ir.equalization import forget_missing
from luciole.ir.learned_levels import weight_planes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.lquantizer.calibration.rows import Dense

Learned = LQFullyConnected | LQConv2D


@dataclass(frozen=True)
class LearnedParameters:
    """A layer's learned parameters: the input's basis [kx] and offset, one basis [o, kw] and one
    row of code numbers [o, n] for each output, and offsets [o] and bias [o] where these were
    learned.
    """

    input_basis: NDArray[np.float64]
    weight_basis: NDArray[np.float64]
    weight_codes: NDArray[np.intp]
    input_offset: float = 0.0
    weight_offsets: NDArray[np.float64] | None = None
    bias: Array | None = None


def replace_layers(ops: Sequence[Dense], learned: LearnedParameters) -> list[tuple[Learned, Value]]:
    """Replace layers that share their weights by ones that share learned parameters.

    Returns, for each, the new operator and the tensor that took the old result's place and name.
    """
    graph = ops[0].own_graph
    shared = _constants(graph, ops[0], learned)
    return [_replace(graph, op, learned, shared) for op in ops]


class _Constants(NamedTuple):
    """The operands behind the input."""

    input_scales: Value
    weights_scales: Value
    weights_binary: Value
    bias: Value | None
    offsets: Value | None


def _constants(graph: Graph, op: Dense, learned: LearnedParameters) -> _Constants:
    code, bits = _by_position(op, learned.weight_codes), learned.weight_basis.shape[1]
    bias = _flat_bias(graph, op)
    if learned.bias is not None:
        bias = _constant(graph, op, "bias", learned.bias.astype(np.float32))
    offsets = learned.weight_offsets
    return _Constants(
        _constant(graph, op, "input_scales", learned.input_basis.astype(np.float32)),
        _constant(graph, op, "weights_scales", learned.weight_basis.astype(np.float32)),
        _constant(graph, op, "weights_binary", weight_planes(code, bits)),
        bias,
        None if offsets is None else _constant(graph, op, "offsets", offsets.astype(np.float32)),
    )


def _by_position(op: Dense, code: NDArray[np.intp]) -> NDArray[np.intp]:
    """Lay code numbers [o, n] in the weights' shape: each kernel position has its own words."""
    return code if isinstance(op, FullyConnected) else code.reshape(op.filter.dims)


def _replace(
    graph: Graph, op: Dense, learned: LearnedParameters, shared: _Constants
) -> tuple[Learned, Value]:
    new = _learned_op(graph, op, learned, shared)
    graph.insert_before(op, new, graph.unique_name(f"{op.name}/lq"))
    result = _shaped_like(graph, op, new)
    name = op.name
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name
    return new, result


def _learned_op(graph: Graph, op: Dense, learned: LearnedParameters, shared: _Constants) -> Learned:
    offset = float(np.float32(learned.input_offset))
    if isinstance(op, FullyConnected):
        n = learned.weight_codes.shape[1]
        return LQFullyConnected(
            _rows(graph, op, n),
            shared.input_scales,
            shared.weights_scales,
            shared.weights_binary,
            shared.bias,
            shared.offsets,
            hidden_size=n,
            activation=op.activation,
            input_offset=offset,
        )
    return LQConv2D(
        op.input,
        shared.input_scales,
        shared.weights_scales,
        shared.weights_binary,
        shared.bias,
        shared.offsets,
        padding=op.padding,
        stride_w=op.stride_w,
        stride_h=op.stride_h,
        dilation_w_factor=op.dilation_w_factor,
        dilation_h_factor=op.dilation_h_factor,
        input_channels=op.filter.dims[3],
        activation=op.activation,
        input_offset=offset,
    )


def _shaped_like(graph: Graph, op: Dense, new: Learned) -> Value:
    """Bring the new operator's result into the old one's shape, through a RESHAPE where they
    differ.
    """
    if len(new.output.shape) == len(op.output.shape):
        return new.output
    extents = np.array([-1, new.output.shape[-1] or 0], np.int32)
    reshape = Reshape(
        new.output, _constant(graph, op, "shape", extents), new_shape=tuple(extents.tolist())
    )
    return graph.insert_after(new, reshape, graph.unique_name(f"{op.name}/shaped")).output


def nearest_codes(weights: Array, basis: NDArray[np.float32]) -> NDArray[np.intp]:
    """Find the code numbers [o, n] of the levels nearest to weights [o, n]."""
    return LearnedLevels(basis, np.zeros(len(basis))).encode(weights)


def finish(model: Model) -> None:
    """Fuse activations into the new layers, and drop operators and buffers that nothing uses."""
    for graph in model.graphs:
        fuse_activation_function(graph)
        remove_dead(graph)
    forget_missing(model)
    remove_dead_buffers(model)


def _rows(graph: Graph, op: FullyConnected, n: int) -> Value:
    """Shape the layer's input with one row of n in the last axis, as the new operator wants it."""
    if op.input.shape and op.input.shape[-1] == n:
        return op.input
    extents = np.array([-1, n], np.int32)
    reshape = Reshape(op.input, _constant(graph, op, "rows", extents), new_shape=(-1, n))
    return graph.insert_before(op, reshape, graph.unique_name(f"{op.name}/rows_of_input")).output


def _flat_bias(graph: Graph, op: Dense) -> Value | None:
    """Shape the layer's bias as [o]: FULLY_CONNECTED takes any shape with o elements."""
    data = None if op.bias is None else op.bias.data
    if data is None or data.ndim == 1:
        return op.bias
    return _constant(graph, op, "bias", data.reshape(-1))


def _constant(graph: Graph, op: Dense, what: str, array: Array) -> Value:
    return graph.add_constant(graph.unique_name(f"{op.name}/{what}"), array)
