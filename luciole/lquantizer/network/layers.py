"""Find the layers of a model that can get learned levels, and say why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.constancy import is_fixed
from luciole.ir.analysis.ends import is_first
from luciole.ir.analysis.weights import is_layer, weight_constant
from luciole.ir.calls import reachable
from luciole.ir.graph import all_ops
from luciole.ir.names import short_names
from luciole.ir.ops.activations import APPLIED
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.text.common import one_line
from luciole.ir.value import Use, element_count
from luciole.lquantizer.assignment.choices import with_few_weights
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.calibration.rows import Dense
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.problem import Scope
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat

_LISTED = 3
"""Layers in a sentence."""
_RAW = 8
"""Bits in which a first layer reads: where 4 bits for all keep 11.8 dB of an answer to seven
measurements whose distributions differ, 8 bits in front keep 18.1, for 32 bytes.
"""
_SMALL = 0.25
"""Share of a network's weights up to which a first dense layer costs little by more bits."""
_EMPTY = "it has no dense layer"
_ASKED = "--all-layers (all_layers) or a config that names it gives it levels"


def misfit(op: Op) -> str | None:
    """Return the reason why a layer cannot be quantized, None when it can."""
    if not isinstance(op, FullyConnected | Conv2D):
        return _without_kernel(op)
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    if op.input.dtype != TensorType.FLOAT32 or weights.dtype != TensorType.FLOAT32:
        return f"it is {op.input.dtype.name} x {weights.dtype.name}, FLOAT32 is needed"
    if weights.data is None:
        return "its weights are computed, not constant"
    if op.bias is not None and (op.bias.data is None or op.bias.dtype != TensorType.FLOAT32):
        return "its bias is not a FLOAT32 constant"
    if is_fixed(op.input):
        return "its input is constant"
    if op.activation not in APPLIED:
        return f"its fused activation {op.activation.name} has no kernel"
    return _unusual_form(op)


def _without_kernel(op: Op) -> str:
    reason = f"{op.kind} has no learned form"
    return f"{reason} but for its weights: {_ASKED}" if _stored_weights(op) else reason


def _unusual_form(op: Dense) -> str | None:
    if isinstance(op, Conv2D):
        return None if op.input.shape[-1] == op.filter.shape[-1] else "it is a grouped convolution"
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return f"its weights are stored as {op.weights_format.name}"
    return None


@dataclass
class Group:
    """Layers that share their weights (an unrolled LSTM's steps do) and are learned together."""

    name: str
    choice: Choice
    ops: list[Dense] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of the layers as they are found; splitting an activation off gives an operator another."""


@dataclass
class Stored:
    """Layers that read the same constant weights as floats, to be stored as levels of some
    ``bits``: the operands, and the ``axis`` of outputs.
    """

    axis: int
    bits: int
    uses: list[Use] = field(default_factory=list)

    @property
    def ops(self) -> list[Op]:
        """The layers."""
        return [use.op for use in self.uses]

    @property
    def weights(self) -> Value:
        """The weights that they read at present."""
        op, slot = self.uses[0]
        return op.required(slot)


def find_stored(graph: Graph, config: Config, skipped: dict[str, str]) -> list[Stored]:
    """Find the layers without a learned form whose weights are asked for all the same, and drop
    them from the ``skipped`` ones.
    """
    layers = list(filter(is_layer, graph.ops))
    config = config.among([op.name for op in layers], _kinds(graph))
    by_weights: dict[Value, Stored] = {}
    for op in layers:
        weights, choice = _stored_weights(op), config.choose(op.name)
        is_named = config.all_layers or config.names(op.name)
        if weights is None or choice.skip or not is_named or op.name not in skipped:
            continue
        value, axis = weights
        stored = by_weights.setdefault(value, Stored(axis, choice.weight_bits))
        stored.uses += [use for use in value.users if use.op is op]
        del skipped[op.name]
    return list(by_weights.values())


def _stored_weights(op: Op) -> tuple[Value, int] | None:
    """Find the float constant that a layer multiplies with, and the axis of its outputs."""
    value = weight_constant(op)
    if value is None or value.dtype != TensorType.FLOAT32 or value.sparsity is not None:
        return None
    if isinstance(op, BatchMatMul):
        adjoint = op.adjoint_rhs if value is op.y else not op.adjoint_lhs
        return value, len(value.dims) - (2 if adjoint else 1)
    if op.quant is None or op.quant.weight is None or not element_count(value.dims):
        return None
    return value, op.quant.axis % len(value.dims)


def find_groups(
    graph: Graph, config: Config, scope: Scope | None = None
) -> tuple[list[Group], dict[str, str]]:
    """Find the layers to quantize, in execution order, and by name the reason for each layer that
    is left alone. Raises QuantizeError when rules choose differently for layers that share their
    weights.

    Where a scope learns layers together, those with the same weights make a group; and unless the
    config names them, a network's first convolution stays as it is, and so do the dense layers
    behind further ones: they are small and cost most of the accuracy. A first dense layer among
    larger ones then reads its inputs, which nobody shaped, in 8 bits.
    """
    scope = scope or Scope()
    layers = list(filter(is_layer, graph.ops))
    config = config.among([op.name for op in layers], _kinds(graph))
    groups: dict[tuple[int, int], Group] = {}
    skipped: dict[str, str] = {}
    convolutions = [op for op in layers if scope.together and isinstance(op, Conv2D)]
    behind = not all(map(is_first, convolutions))
    wide = _small_first(layers) if scope.together else set()
    for op in layers:
        choice = config.choose(op.name)
        reason = _why_not(op, choice, scope)
        is_named = config.all_layers or config.names(op.name)
        if reason is None and convolutions and not is_named:
            reason = _spared(op, behind)
        if op in wide and not is_named:
            choice = replace(choice, input_bits=_RAW)
        if reason is not None or not isinstance(op, FullyConnected | Conv2D):
            skipped[op.name] = reason or _without_kernel(op)
            continue
        key = (id(op.operands[1]), id(op.bias)) if scope.together else (id(op), 0)
        group = groups.setdefault(key, Group(op.name, choice))
        group.ops.append(op)
        group.names.append(op.name)
        _agree(group, op, choice, config)
    return list(groups.values()), skipped | _inside(graph)


def _small_first(layers: Sequence[Op]) -> set[Op]:
    """Find the dense layers that read a network's inputs and hold a small share of its weights."""
    small = with_few_weights(layers, _SMALL)
    return {op for op in small if isinstance(op, FullyConnected) and is_first(op)}


def _kinds(graph: Graph) -> dict[str, str]:
    """Return the kinds of the layers of a graph, and of graphs that it calls, by name."""
    return {op.name: op.kind for op in filter(is_layer, all_ops(reachable(graph)))}


def _inside(graph: Graph) -> dict[str, str]:
    """Find the layers of graphs that operators call, by name, with the reason why they stay."""
    called = [inner for inner in reachable(graph) if inner is not graph]
    return {
        op.name: f"it is inside of graph {inner.name!r}, which is called"
        for inner in called
        for op in filter(is_layer, inner.ops)
    }


def _why_not(op: Op, choice: Choice, scope: Scope) -> str | None:
    """Return the reason why a layer stays float, None where nothing speaks against levels."""
    if choice.skip:
        return "skipped by the config"
    if isinstance(op, Conv2D) and not scope.convolutions:
        return f"{op.kind} has no learned form"
    reason = misfit(op)
    if reason is None and choice.weights_only and not isinstance(op, FullyConnected):
        return "weights only has a form for dense layers"
    return reason


def _agree(group: Group, op: Op, choice: Choice, config: Config) -> None:
    """Set a group's choice by the rule for one of its layers. Raises QuantizeError when two rules
    differ.
    """
    if choice == group.choice or group.name in config.exact or not config.names(op.name):
        return
    named = [name for name in group.names[:-1] if config.names(name)]
    if named:
        raise QuantizeError(
            f"config: {named[0]!r} and {op.name!r} share their weights, but the rules choose "
            "differently for them"
        )
    group.choice = choice


def _spared(op: Op, behind: bool) -> str | None:
    """Return why a network with convolutions keeps a layer as it is, None where it does not;
    ``behind`` says whether its dense layers are behind others than first ones.
    """
    if isinstance(op, FullyConnected):
        return f"a dense layer behind convolutions: {_ASKED}" if behind else None
    return f"the first convolution: {_ASKED}" if is_first(op) else None


def check_layers(
    graph: Graph, layers: Sequence[str], skipped: Mapping[str, str], config: Config
) -> None:
    """Raise QuantizeError when no layer is left, or a config speaks of none there is."""
    names = [*layers, *skipped]
    unused = config.among(names, _kinds(graph)).unused(names)
    if unused:
        known = ", ".join(short_names(names).values()) or "none"
        raise QuantizeError(f"config: {unused[0]!r} matches no layer; the layers are {known}")
    if not layers:
        reasons = [f"{one_line(name)}: {reason}" for name, reason in skipped.items()]
        others = [f"and {len(reasons) - _LISTED} more"] if len(reasons) > _LISTED else []
        why = "; ".join([*reasons[:_LISTED], *others])
        raise QuantizeError(f"nothing to quantize: {why or _EMPTY}")
