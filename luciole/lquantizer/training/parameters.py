"""Read what is learned in one layer, as arrays, from its operator, and write it back.

The codes of a layer follow from its shadow weights: each takes its row's nearest level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from luciole.ir import Array, Graph, Value
from luciole.ir.analysis.weights import learned_weights
from luciole.ir.learned_levels import weight_planes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.quantization import ACTIVATIONS, is_affine
from luciole.ir.value import shape_text
from luciole.lquantizer.errors import QuantizeError

LQOp = LQFullyConnected | LQConv2D


@dataclass
class TrainableParameters:
    """Float32 arrays. ``latents`` are the shadow weights, one row of n for each of o outputs."""

    latents: Array
    """[o, n]; n counts the taps of a filter, [kh, kw, c] in this order."""
    weight_basis: Array
    """[o, kw]"""
    weight_offset: Array
    """[o]"""
    input_basis: Array
    """[kx]"""
    input_offset: Array
    """[]"""
    bias: Array
    """[o]"""

    def items(self) -> Iterator[tuple[str, Array]]:
        """Give names with arrays."""
        for field in fields(self):
            yield field.name, getattr(self, field.name)


def trained_ops(graph: Graph) -> list[LQOp]:
    """List the operators with learned levels. Raises QuantizeError when there is none."""
    ops = [op for op in graph.ops if isinstance(op, LQOp)]
    if not ops and any(v.dtype in ACTIVATIONS and is_affine(v) for v in graph.values):
        raise QuantizeError(
            "the student computes with integers: give the Result of its quantization instead"
        )
    if not ops:
        raise QuantizeError("the student has no layer with learned levels: quantize it first")
    return ops


def row_shape(op: LQOp) -> tuple[int, ...]:
    """List the axes of one output's weights: [n], or [kh, kw, c]."""
    if isinstance(op, LQFullyConnected):
        return (op.hidden_size,)
    return (*_constant(op, "weights_binary").shape[2:4], op.input_channels)


def read(op: LQOp, target: Array | None = None, margin: float = 0.05) -> TrainableParameters:
    """Read an operator's parameters, its shadow weights inside of the cells of its present codes.

    They lie as close to ``target`` (float weights, [o, n] or [o, kh, kw, c]) as a margin of that
    many steps from the cells' edges lets them, or on their levels without one. Raises QuantizeError
    for targets of another shape and for operands that are computed.
    """
    names = ("weights_scales", "weights_offsets", "weights_binary", "bias")
    basis, offset, _, bias = (_constant(op, name) for name in names)
    outputs, weights = len(basis), learned_weights(op)
    assert weights is not None, "a layer whose operands are constant has weights"
    latents = weights.values()
    if target is not None:
        levels, index = weights.format.levels[0], weights.format.ranks(weights.codes)
        latents = into_cells(_rows(op, target, latents.shape), levels, index, margin)
    return TrainableParameters(
        latents.astype(np.float32),
        basis.copy(),
        offset.copy() if offset.size else np.zeros(outputs, np.float32),
        _constant(op, "input_scales").copy(),
        np.array(op.input_offset, np.float32),
        bias.copy() if bias.size else np.zeros(outputs, np.float32),
    )


def _constant(op: LQOp, name: str) -> Array:
    """Read a constant operand, empty where it is absent."""
    value: Value | None = dict(op.named_operands()).get(name)
    if value is None:
        return np.zeros(0, np.float32)
    if value.data is None:
        raise QuantizeError(f"{op}: {name} is computed, only constants can be trained")
    return value.data


def _rows(op: LQOp, target: Array, shape: tuple[int, ...]) -> Array:
    own_shape = (shape[0], *row_shape(op))
    if target.shape not in (own_shape, shape):
        raise QuantizeError(
            f"{op}: its target weights are {shape_text(target.shape)}, "
            f"{shape_text(own_shape)} is needed"
        )
    return target.reshape(shape)


def into_cells(target: Array, levels: Array, index: Array, margin: float) -> Array:
    """Move each number into the cell of its level; the outer cells end half a step outside."""
    gap = np.diff(levels, axis=1)
    reach = (levels[:, -1:] - levels[:, :1]) / (2 * gap.shape[1])
    between = (levels[:, :-1] + levels[:, 1:]) / 2
    low = np.concatenate([levels[:, :1] - reach, between + margin * gap], axis=1)
    high = np.concatenate([between - margin * gap, levels[:, -1:] + reach], axis=1)
    bounds = (np.take_along_axis(side, index, axis=1) for side in (low, high))
    return np.clip(target, *bounds)


def together(graph: Graph) -> list[list[LQOp]]:
    """Group operators with learned levels by the parameters that they share: the steps of an
    unrolled recurrent layer do. Raises QuantizeError when there is none.
    """
    groups: dict[tuple[Value | float | None, ...], list[LQOp]] = {}
    for op in trained_ops(graph):
        constants = (v for name, v in op.named_operands() if name != "input")
        groups.setdefault((*constants, op.input_offset), []).append(op)
    return list(groups.values())


def encode(op: LQOp, learned: TrainableParameters) -> Array:
    """Pack the bit planes of the shadow weights' nearest levels, as the operator holds them."""
    levels = LearnedLevels(learned.weight_basis, learned.weight_offset)
    numbers = levels.encode(learned.latents).reshape(-1, *row_shape(op))
    return weight_planes(numbers, levels.bits)


def write(ops: Sequence[LQOp], learned: TrainableParameters) -> None:
    """Write learned parameters into the operators that share them.

    Constants that other operators use as well stay as they are for them. An offset or a bias that
    is 0 everywhere is not added where there was none.
    """
    op = ops[0]
    binary = encode(op, learned)
    _set(ops, "weights_scales", learned.weight_basis)
    _set(ops, "weights_binary", binary)
    _set(ops, "input_scales", learned.input_basis)
    for each in ops:
        each.input_offset = float(learned.input_offset)
    for name, array in (("bias", learned.bias), ("weights_offsets", learned.weight_offset)):
        if array.any() or dict(op.named_operands()).get(name) is not None:
            _set(ops, name, array)


def _set(ops: Sequence[LQOp], name: str, array: Array) -> None:
    op, graph = ops[0], ops[0].own_graph
    value: Value | None = dict(op.named_operands()).get(name)
    if value is not None and not value.is_output and {use.op for use in value.users} <= set(ops):
        value.make_constant(array)
        return
    place = [field.name for field in op.operand_fields()].index(name)
    constant = graph.add_constant(graph.unique_name(f"{op.name}/{name}"), array)
    for each in ops:
        each.set_operand(place, constant)
