"""The published method: learn levels for weights and inputs of every dense layer from unlabelled
data.

Three stages (LQ-Nets' quantizer applied after training): (a) weights, one basis for each output;
(b) one basis for each layer's input, fitted on the float network's activations; (c) the input bases
refitted layer by layer, on the quantized network's own activations against the float network's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.records import Progress, Records, check_records
from luciole.ir import Array, Model, Value
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.lquantizer.calibration.watch import activations, check_finite
from luciole.lquantizer.config import Recipe
from luciole.lquantizer.formats import levels
from luciole.lquantizer.formats.levels import Fit, Samples, Settings
from luciole.lquantizer.network.layers import Layer, check_layers, constant_bytes, find_layers
from luciole.lquantizer.network.measure import Trace
from luciole.lquantizer.report import LayerReport, Report, error_of, in_order
from luciole.lquantizer.rewrite.learned_levels import finish, replace_layer, set_input_basis

Track = Callable[[str, int], Progress]
"""``track(what, total)`` begins a piece of long work and returns what to call as it advances."""


@dataclass
class Result:
    """A quantized model and what was done to it; for fine-tuning, the float weights [o, n] that
    each layer's codes stand for, by the name of its operator, and where to find the layers of the
    report again, by their names there.
    """

    model: Model
    report: Report
    latents: dict[str, Array] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)


@dataclass
class _Job:
    """One layer on its way from float to learned levels, with what the float network saw there."""

    layer: Layer
    inputs: Array
    outputs: Array
    weight_fit: Fit
    input_fit: Fit
    op: LQFullyConnected
    result: Value
    report: LayerReport


def quantize_records(
    model: Model,
    records: Records,
    recipe: Recipe | None = None,
    settings: Settings | None = None,
    track: Track | None = None,
) -> Result:
    """Quantize every dense layer that qualifies; the given model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them. Raises
    QuantizeError when nothing qualifies or the data cannot be used.
    """
    begun = time.perf_counter()
    recipe, settings, track = recipe or Recipe(), settings or Settings(), track or untracked
    count = check_records(model.graph, records)
    check_finite(records)
    quantized = model.clone()
    twins = dict(zip(quantized.graph.values, model.graph.values, strict=True))
    layers, skipped = find_layers(quantized.graph, recipe)
    check_layers([layer.name for layer in layers], skipped, recipe)
    # found now, because replacing one layer gives the next another input
    ends = [(twins[layer.op.input], twins[layer.op.output]) for layer in layers]
    watched = [value for pair in ends for value in pair]
    seen = activations(model, watched, records, track("float network", count))
    step = track("fitting levels", len(layers))
    jobs = []
    for layer, (x, y) in zip(layers, ends, strict=True):
        jobs.append(_fit(layer, seen[x], seen[y], settings))
        step(1)
    _refit(quantized, jobs, records, settings, track("refitting inputs", len(jobs)))
    _measure(quantized, jobs, records, track("quantized network", count))
    report = Report(
        in_order(model, {job.layer.name: job.report for job in jobs}, skipped),
        warnings=_warnings(jobs),
    )
    finish(quantized)
    report.seconds = time.perf_counter() - begun
    traces = {job.layer.name: Trace([job.layer.name], [job.op.name]) for job in jobs}
    return Result(quantized, report, traces=traces)


def untracked(what: str, total: int) -> Progress:
    """No progress shown."""
    return lambda done: None


def _fit(layer: Layer, inputs: Array, outputs: Array, settings: Settings) -> _Job:
    """Stages (a) and (b) for one layer; its operator is replaced."""
    choice, weights = layer.choice, layer.weights
    weight_fit = levels.fit(Samples.of(weights), choice.weight_bits, settings)
    input_fit = levels.fit(Samples.compressed(inputs), choice.input_bits, settings)
    report = LayerReport(layer.name, choice.input_bits, choice.weight_bits)
    report.bytes_before = constant_bytes(layer.op)
    report.weights_mse = float(np.mean(weight_fit.mse))
    op, result = replace_layer(layer.op, input_fit.basis[0], weight_fit.basis)
    report.bytes_after = constant_bytes(op)
    return _Job(layer, inputs, outputs, weight_fit, input_fit, op, result, report)


def _refit(
    model: Model, jobs: Sequence[_Job], records: Records, settings: Settings, step: Progress
) -> None:
    """Stage (c): codes from what the quantized network computes, levels close to what the float
    network did.
    """
    for job in jobs:
        own = activations(model, [job.op.input], records)[job.op.input].reshape(job.inputs.shape)
        if not np.array_equal(own, job.inputs):
            samples = Samples.compressed(own, job.inputs)
            job.input_fit = levels.fit(
                samples, job.layer.choice.input_bits, settings, start=job.input_fit.basis
            )
            set_input_basis(job.op, job.input_fit.basis[0])
        job.report.input_mse = float(job.input_fit.mse[0])
        step(1)


def _measure(model: Model, jobs: Sequence[_Job], records: Records, progress: Progress) -> None:
    """The error of each layer's output in the finished network."""
    found = activations(model, [job.result for job in jobs], records, progress)
    for job in jobs:
        job.report.mse, job.report.snr_db = error_of(
            job.outputs, found[job.result].reshape(job.outputs.shape)
        )


def _warnings(jobs: Sequence[_Job]) -> list[str]:
    """What a user should know before trusting the result."""
    lines = []
    for job in jobs:
        low, high = float(job.inputs.min()), float(job.inputs.max())
        if job.layer.choice.input_bits == 1 and low >= 0 and high > 0:
            lines.append(
                f"layer {job.layer.name!r}: inputs lie between {low:.3g} and {high:.3g}, and one "
                "bit without an offset has levels -a and +a only: standardise the data (say "
                "x/255 -> (x/255 - mean)/std) or give the layer more input bits"
            )
    return lines
