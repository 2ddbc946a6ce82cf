"""Quantize a network whose operators have schemes of their own: learned levels for some layers,
uniform integers for others, floats where that is asked for.

Layers with learned levels take and give floats; where they meet integers, QUANTIZE and DEQUANTIZE
stand between them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from luciole.interpreter.records import Records, Track
from luciole.ir import Graph, Model, Op, Value
from luciole.ir.analysis.weights import has_levels, has_weights, is_layer
from luciole.ir.equalization import Equalized, equalized, original_name
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import is_affine
from luciole.lquantizer.assignment.choices import among, configured, joined
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.assignment.layer_format import Levels
from luciole.lquantizer.assignment.options import FitOptions
from luciole.lquantizer.assignment.schemes import (
    BYTES,
    FLOAT,
    LEARNED,
    SCHEMES,
    Chosen,
    UniformOptions,
    uniform_types,
)
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.network.places import integers_of
from luciole.lquantizer.network.real import check_float
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, float_bytes
from luciole.lquantizer.whole.integers import quantize_uniform
from luciole.lquantizer.whole.levels import quantize_records


def quantize_mixed(
    model: Model,
    records: Records | None,
    fit: FitOptions,
    uniform: UniformOptions,
    scheme: str,
    track: Track | None = None,
) -> Result:
    """Quantize each operator as the config of ``fit`` says, else as the ``scheme`` does: layers
    with learned levels as ``fit`` says, and where they can have none as its ``spared`` does; the
    others as ``uniform`` says. The given model stays as it is.

    Raises QuantizeError as ``quantize_records`` and ``quantize_uniform`` do, and for rules that
    speak of no operator.
    """
    check_float(model)
    work = model.clone() if fit.unroll_lstms else model
    if fit.unroll_lstms and unroll_unidirseqlstm(work.graph):
        remove_dead(work.graph)
    config, chosen = fit.per_layer(), _chosen(fit, scheme, work.graph)
    if not _learns(config, chosen, work.graph):
        asked = _asked(config, work.graph)
        return quantize_uniform(
            work, records, uniform, track, lambda g: _beside(g, chosen, fit), asked=asked
        )
    if records is None:
        raise QuantizeError("levels are learned from data: give some")
    method = OutputAware(fit.seed)
    learned = quantize_records(work, records, method, _levels(config, chosen, work.graph), track)
    asked = _asked(config, work.graph)
    return _with_integers(learned, records, fit, uniform, chosen, track, asked)


def with_integers(
    learned: Result, model: Model, records: Records, fit: FitOptions, track: Track | None = None
) -> Result:
    """Give the layers that learned levels left alone what ``spared`` says, unless the config wants
    them as they are, and what only moves elements beside them; the result is the learned one where
    there are none. ``model`` is the float network that it was made from.
    """
    uniform = UniformOptions(seed=fit.seed)
    chosen = _chosen(fit, LEARNED, model.graph)
    asked = _asked(fit.per_layer(), model.graph)
    return _with_integers(learned, records, fit, uniform, chosen, track, asked)


def _asked(config: Config, graph: Graph) -> frozenset[str]:
    """List the operators that a rule of a config speaks of."""
    known = among(config, graph)
    return frozenset(op.name for op in graph.ops if known.names(op.name))


def _chosen(fit: FitOptions, scheme: str, graph: Graph) -> dict[str, Chosen]:
    """Choose a format for each operator, by its name."""
    config = fit.per_layer()
    choices = configured(config, config.default.own_scheme or scheme)
    return {op.name: format for op, format in choices(graph).items()}


def _learns(config: Config, chosen: Mapping[str, Chosen], graph: Graph) -> bool:
    """Check whether layers get learned levels. Where none of them can, the others get their formats
    all the same; where there are no others, learning says why.
    """
    layers = [op for op in graph.ops if is_layer(op)]
    learned = any(isinstance(chosen[op.name], Levels) for op in layers)
    if not learned or not uniform_types({op: chosen[op.name] for op in layers}):
        return learned
    return bool(find_groups(graph, _levels(config, chosen, graph))[0])


def _levels(config: Config, chosen: Mapping[str, Chosen], graph: Graph) -> Config:
    """Narrow a config to the layers that get learned levels; all others are skipped."""
    layers = [op.name for op in graph.ops if is_layer(op)]
    known = among(config, graph).only_of(layers)
    others = [name for name in layers if not isinstance(chosen[name], Levels)]
    return known.with_choices({name: replace(known.choose(name), skip=True) for name in others})


def _with_integers(
    learned: Result,
    records: Records,
    fit: FitOptions,
    uniform: UniformOptions,
    chosen: Mapping[str, Chosen],
    track: Track | None,
    asked: frozenset[str],
) -> Result:
    """Give the operators beside learned levels the formats ``chosen`` for them by name."""

    def choices(graph: Graph) -> dict[Op, Chosen]:
        return _beside(graph, chosen, fit)

    if not _has_any(learned.model, choices(learned.model.graph)):
        return learned
    beside = quantize_uniform(learned.model, records, uniform, track, choices, asked=asked)
    report, graph = learned.report, beside.model.graph
    names = {v.name: note.original for v, note in equalized(graph).items()}
    done = {names.get(layer.name, layer.name): layer for layer in beside.report.layers}
    whole = {
        names.get(op.name, op.name) for op in graph.ops if _computes_integers(op)
    } - done.keys()
    left = [layer for layer in report.layers if layer.skipped is None or layer.name not in whole]
    report.layers = [_entered(layer, done, chosen) for layer in left]
    report.floats, report.tensors = beside.report.floats, beside.report.tensors
    report.stays_float = float_bytes(beside.model)
    return replace(learned, model=beside.model)


def _beside(graph: Graph, chosen: Mapping[str, Chosen], fit: FitOptions) -> dict[Op, Chosen]:
    """Choose formats where learned levels are not."""
    known: dict[Op, Chosen] = {}
    spared = fit.spared_format
    types = SCHEMES.get(spared or BYTES)
    between = types is not None and types.activations is not None
    renamed = equalized(graph)
    for op in graph.ops:
        name = _name(op, chosen, renamed)
        if has_levels(op):
            known[op] = FLOAT
        elif name is not None and not isinstance(chosen[name], Levels):
            known[op] = chosen[name]
        elif has_weights(op):
            known[op] = spared
        elif is_layer(op):  # a product of two tensors has no weights that could be stored
            known[op] = spared if between else FLOAT
    return joined(graph, known)


def _name(op: Op, chosen: Container[str], renamed: Mapping[Value, Equalized]) -> str | None:
    """Find the name by which something is chosen for an operator: its result's, or the one that it
    had before channels were rescaled; the network that was given may have been rescaled as well.
    """
    names = [name for v in op.results for name in (v.name, original_name(v, renamed))]
    return next((name for name in names if name in chosen), None)


def _has_any(model: Model, choices: Mapping[Op, Chosen]) -> bool:
    schemes = uniform_types(choices)
    alone = [op for op, types in schemes.items() if types.activations is None and has_weights(op)]
    return bool(alone or integers_of(schemes))


def _computes_integers(op: Op) -> bool:
    """Check whether an operator gives integers that stand for real numbers."""
    return any(is_affine(value) for value in op.results)


def _entered(
    layer: LayerReport, done: Mapping[str, LayerReport], chosen: Mapping[str, Chosen]
) -> LayerReport:
    """Take over the report of a layer that learned levels left alone, with the reason where levels
    were ``chosen`` for it.
    """
    if layer.skipped is None or layer.name not in done:
        return layer
    why = layer.skipped if isinstance(chosen.get(layer.name), Levels) else None
    return replace(done[layer.name], name=layer.name, short=layer.short, spared=why)
