"""Give the layers of a network learned levels, from unlabelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.records import Records, Track, digests, untracked
from luciole.ir import Array, Model, Op, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.calibration.rows import Dense
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.levels import Fit
from luciole.lquantizer.network.bias import correct_biases
from luciole.lquantizer.network.branches import Aim
from luciole.lquantizer.network.even_inputs import Disturbances
from luciole.lquantizer.network.preparation import Preparation, prepare
from luciole.lquantizer.network.problem import LayerProblem, LearnedLayer, LevelsMethod
from luciole.lquantizer.network.rescale import note_factors
from luciole.lquantizer.network.result import Result, Trace
from luciole.lquantizer.network.stored import measure_stored, store_weights
from luciole.lquantizer.network.walk import Job
from luciole.lquantizer.report import (
    LayerReport,
    Report,
    error_of,
    float_bytes,
    histogram,
    in_order,
    snr_db,
)
from luciole.lquantizer.rewrite.bcq import replace_layer_bcq
from luciole.lquantizer.rewrite.learned_levels import LearnedParameters, finish, replace_layers

_BYTES_OF_OUTPUT = 16
"""Bytes that integers of 8 bits have for each output: a bias, two scales, and a share of 64-bit
zero points, which layers of one width have in common. Without that share they are 12, alone 20."""


def quantize_records(
    model: Model,
    records: Records,
    method: LevelsMethod,
    config: Config | None = None,
    track: Track | None = None,
    unroll: bool = False,
    known: Disturbances | None = None,
) -> Result:
    """Quantize every layer that the config wants, that the method takes on and that qualifies; the
    given model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them. ``unroll`` turns
    LSTMs into dense layers first, which then are quantized too; their state starts at zero in each
    run. ``known`` saves who quantizes the same network again and again some work. Raises
    QuantizeError when nothing qualifies or the data cannot be used.
    """
    track = track or untracked
    prepared = prepare(model, records, config or Config(), method, unroll, known)
    work, network, jobs = prepared.work, prepared.network, prepared.jobs
    aims = network.aims(jobs, track("float network", prepared.count))
    stored = store_weights(prepared, records, method.seed)
    written = _Written(prepared, method.scope.together)
    network.walk(jobs, aims, method, written.add, track("learning layers", len(jobs)))
    done = [written.layers[job.name] for job in jobs]
    if method.scope.corrects_biases:
        correct_biases(prepared, records, track)
    _measure(prepared, done, aims, records, track)
    measure_stored(prepared, stored, records)
    finish(work)
    note_factors(work.graph, prepared.factors)
    reports = stored | {layer.report.name: layer.report for layer in done}
    report = Report(in_order(prepared.listed, reports, prepared.skipped))
    report.warnings = [layer.warning for layer in done if layer.warning is not None]
    report.stays_float = float_bytes(work)
    latents = {
        op.name: layer.latent for layer in done for op in layer.ops if layer.latent is not None
    }
    traces = {layer.job.name: layer.trace(prepared) for layer in done}
    return Result(work, report, latents, traces, learned_from=digests(records))


@dataclass
class _Layer:
    """The operators that replaced layers which share their weights, and their results."""

    job: Job[Choice]
    ops: list[Op]
    results: list[Value]
    report: LayerReport
    latent: Array | None
    """The float weights [o, n] behind the codes, where they are kept."""
    with_branch: bool
    """Whether it made up for the error of another branch."""
    warning: str | None = None

    def trace(self, prepared: Preparation) -> Trace:
        """Note where the layers are found again."""
        floats, learned = prepared.groups[self.job.name].names, [op.name for op in self.ops]
        return Trace(floats, learned, self.job.units, self.with_branch)


@dataclass
class _Written:
    """The layers that were replaced so far, by name."""

    prepared: Preparation
    keeps_latents: bool
    layers: dict[str, _Layer] = field(default_factory=dict)

    def add(self, job: Job[Choice], problem: LayerProblem, learned: LearnedLayer) -> None:
        """Replace a job's layers by learned ones."""
        ops, results = replaced(self.prepared.groups[job.name].ops, problem, learned)
        report = _report(job, problem, learned, ops[0])
        report.bytes_before = self.prepared.sizes[job.name]
        latent = learned.weights.target.T if self.keeps_latents else None
        warning = None if learned.warning is None else f"layer {job.name!r}: {learned.warning}"
        layer = _Layer(job, ops, results, report, latent, problem.with_branch, warning)
        self.layers[job.name] = layer


def _measure(
    prepared: Preparation,
    layers: Sequence[_Layer],
    aims: Mapping[Op, Aim],
    records: Records,
    track: Track,
) -> None:
    """Enter the error of each layer's output in the finished network, where its method has not
    judged it on held-back rows.
    """
    unjudged = [layer for layer in layers if not layer.report.stages]
    if not unjudged:
        return
    progress = track("quantized network", prepared.count)
    values = [layer.results[0] for layer in unjudged]
    kept: list[list[Array]] = [[] for _ in values]
    for _, arrays in watched(prepared.work, values, records, prepared.batch, progress):
        for array, parts in zip(arrays, kept, strict=True):
            parts.append(array)
    for layer, parts in zip(unjudged, kept, strict=True):
        (op,) = layer.job.ops
        aim = aims[op].own
        layer.report.mse, layer.report.snr_db = error_of(
            aim, np.concatenate(parts).reshape(aim.shape)
        )


def _report(job: Job[Choice], problem: LayerProblem, learned: LearnedLayer, op: Op) -> LayerReport:
    report = LayerReport(job.name, job.format.input_bits, job.format.weight_bits)
    report.format = str(job.format.levels)
    if learned.inputs is None:
        report.input_bits = None
    else:
        report.input_mse = float(learned.inputs.mse[0])
    if learned.stages:
        report.mse = learned.stages["output_aware"]
        report.snr_db = snr_db(learned.signal, report.mse)
        report.stages = {name: snr_db(learned.signal, mse) for name, mse in learned.stages.items()}
        report.way = learned.way
        if learned.inputs is not None:
            report.input_histogram = histogram(_inputs(problem))
    error = learned.weights.values().T - problem.weights
    report.weights_mse = float(np.mean(error**2))
    report.bytes_after = constant_bytes(op)
    report.bytes_int8 = problem.weights.size + _BYTES_OF_OUTPUT * len(problem.weights)
    return report


def _inputs(problem: LayerProblem) -> Array:
    """Take the inputs of a layer that lie inside of the image: [any]."""
    rows = problem.rows
    return rows.values.reshape(-1) if rows.inside is None else rows.values[rows.inside]


def replaced(
    ops: Sequence[Dense], problem: LayerProblem, learned: LearnedLayer
) -> tuple[list[Op], list[Value]]:
    """Replace a job's layers, and return the new operators with the tensors in the old results'
    place: BCQ_FULLY_CONNECTED where inputs stay float, else learned levels. A bias that was not
    learned stays as it is.
    """
    bias = None if np.array_equal(learned.bias, problem.bias) else learned.bias
    if learned.inputs is not None:
        new = replace_layers(ops, _parameters(learned, learned.inputs, bias))
        return [op for op, _ in new], [value for _, value in new]
    basis, code = learned.weights.basis, learned.weights.code.T
    dense = [op for op in ops if isinstance(op, FullyConnected)]
    coded = [replace_layer_bcq(op, basis, code, bias) for op in dense]
    return [op for op, _ in coded], [value for _, value in coded]


def _parameters(learned: LearnedLayer, inputs: Fit, bias: Array | None) -> LearnedParameters:
    offset = learned.weights.offset
    return LearnedParameters(
        inputs.basis[0],
        learned.weights.basis,
        learned.weights.code.T,
        float(inputs.offset[0]),
        offset if np.any(offset) else None,
        bias,
    )
