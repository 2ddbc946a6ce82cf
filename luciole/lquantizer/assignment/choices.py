"""Choose which operator gets which format: one for all, by a config, or as its neighbours
have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from luciole.ir import Graph, Op
from luciole.ir.analysis.ends import is_first, is_last
from luciole.ir.analysis.floats import is_between
from luciole.ir.analysis.weights import has_weights, is_layer, weight_constant
from luciole.ir.names import short_names
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.quant import Like
from luciole.ir.value import element_count
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.assignment.layer_format import MOST_LEARNED, Integers
from luciole.lquantizer.assignment.schemes import BYTES, FLOAT, SCHEMES, Chosen, Scheme
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.stored_levels import FEW

Choices = Callable[[Graph], Mapping[Op, Chosen]]
"""Gives the operators of a graph a format each; an operator that it leaves out stays float."""


_SMALL = 0.02
"""Share of a network's weights up to which a layer at an end, or a depthwise one, keeps 8 bits
beside layers of fewer: ResNet-8 with 4 bits answers 94.1 instead of 93.5 % of images as in float
(4,000 training images that nothing was learned from), for 1 % more bytes. Errors of the few
products that a depthwise convolution sums up do not even out."""


_DECODER = 290
"""Bytes of a file that a layer's learned levels take beside codes and levels: those of an operator
that decodes and of its tensors, as measured in files of convolutional and dense networks."""
_SCALE = 4
"""Bytes of an output's bias that its levels leave out of a file: the scale."""


def everywhere(format: Chosen) -> Choices:
    """Choose one format for all operators; of fewer than 8 bits for weights, depthwise layers and
    those at the ends of the network get one of 8 where they hold little of them, and layers whose
    levels would take as many bytes as more bits do get these.
    """

    def choices(graph: Graph) -> dict[Op, Chosen]:
        wider = _wider(format)
        small = set() if wider is None else set(_small_layers(graph))
        return {op: wider if op in small else _worthwhile(format, op) for op in graph.ops}

    return choices


def _wider(format: Chosen) -> Integers | None:
    """Return the format with the same tensors between operators and weights of 8 bits, where that
    is another one.
    """
    if not isinstance(format, Integers) or format.inputs is None or format.weights >= 8:
        return None
    return replace(format, weights=8)


def _worthwhile(format: Chosen, op: Op) -> Chosen:
    """Return the format with the most bits for a layer's weights, up to 4, that takes no more bytes
    than the one asked for.
    """
    if not isinstance(format, Integers) or not format.has_levels:
        return format
    most = weight_bytes(op, format.weights)
    bits = range(format.weights, MOST_LEARNED + 2)
    return replace(format, weights=max(b for b in bits if weight_bytes(op, b) <= most))


def weight_bytes(op: Op, bits: int) -> float:
    """Count the bytes of a layer's codes and of the levels that they are of, if they are of any; 0
    for an operator without constant weights.
    """
    weights = weight_constant(op) if has_weights(op) else None
    if weights is None or op.quant is None:
        return 0
    count, outputs = element_count(weights.dims), weights.dims[op.quant.axis]
    if bits > MOST_LEARNED:
        return count / 2 if bits == 4 and op.quant.since.takes_int4 else count
    levels = bits if count <= FEW * outputs else outputs * (bits + 1)
    return count * bits / 8 + levels + _DECODER - _SCALE * outputs


def _small_layers(graph: Graph) -> list[Op]:
    """Find the layers that are the first, the last or depthwise, and hold few weights."""
    return [
        op for op in with_few_weights(filter(has_weights, graph.ops), _SMALL) if _is_delicate(op)
    ]


def with_few_weights(layers: Iterable[Op], share: float) -> list[Op]:
    """Find the layers each of which holds at most a share of all their constant weights."""
    constants = {op: weight_constant(op) for op in layers}
    sizes = {op: element_count(v.dims) for op, v in constants.items() if v is not None}
    most = share * sum(sizes.values())
    return [op for op, size in sizes.items() if size <= most]


def _is_delicate(op: Op) -> bool:
    return isinstance(op, DepthwiseConv2D) or is_first(op) or is_last(op)


def configured(config: Config, scheme: str) -> Choices:
    """Choose by the rules of a config, and else by a scheme of the whole network.

    The choices raise QuantizeError for a rule that speaks of no operator of the graph.
    """

    def choices(graph: Graph) -> dict[Op, Chosen]:
        applied = among(config, graph)
        unused = applied.unused([op.name for op in graph.ops])
        if unused:
            names = short_names([op.name for op in graph.ops if is_layer(op)]).values()
            known = ", ".join(names) or "none"
            raise QuantizeError(f"config: {unused[0]!r} matches no layer; the layers are {known}")
        return {op: applied.choose(op.name).format(scheme) for op in graph.ops}

    return choices


def among(config: Config, graph: Graph) -> Config:
    """Copy a config for a graph, whose layers' short names it then understands."""
    layers = [op.name for op in graph.ops if is_layer(op)]
    return config.among(layers, {op.name: op.kind for op in graph.ops})


def joined(graph: Graph, known: Mapping[Op, Chosen]) -> dict[Op, Chosen]:
    """Choose the format of operators that are not ``known``: one around them, where all makers of
    their inputs and all readers of their results have its tensors, or the makers alone where they
    only move elements; float elsewhere.
    """
    chosen = dict(known)
    left = [op for op in graph.ops if op not in known]
    for op in left:
        chosen[op] = next((chosen.get(maker, FLOAT) for maker in _makers(op)), FLOAT)
    changed = True
    while changed:  # each round takes some away from the largest choice that there may be
        outside = [op for op in left if chosen[op] != FLOAT and not _is_inside(op, chosen)]
        chosen |= dict.fromkeys(outside, FLOAT)
        changed = bool(outside)
    return chosen


def _is_inside(op: Op, chosen: Mapping[Op, Chosen]) -> bool:
    scheme = SCHEMES.get(chosen[op] or BYTES)
    if op.quant is None or scheme is None or scheme.activations is None:
        return False
    inputs = [value for value in op.operands if value is not None and is_between(value)]
    if any(v.producer is None or not _is_beside(v.producer.op, scheme, chosen) for v in inputs):
        return False
    return isinstance(op.quant.result, Like) or _is_read_by(op, scheme, chosen)


def _is_read_by(op: Op, scheme: Scheme, chosen: Mapping[Op, Chosen]) -> bool:
    """Check whether all readers of an operator's results have the integers of a scheme."""
    if any(value.is_output for value in op.results):
        return False
    readers = (use.op for value in op.results for use in value.users)
    return all(_is_beside(reader, scheme, chosen) for reader in readers)


def _is_beside(op: Op, scheme: Scheme, chosen: Mapping[Op, Chosen]) -> bool:
    """Check whether tensors around an operator have the integers of a scheme, be the weights of
    others.
    """
    own = SCHEMES.get(chosen.get(op, FLOAT) or BYTES)
    return own is not None and own.activations == scheme.activations


def _makers(op: Op) -> Iterator[Op]:
    for value in op.operands:
        if value is not None and is_between(value) and value.producer is not None:
            yield value.producer.op
