"""Walk over a network and let a method learn every layer, from unlabelled data.

Layers are learned one after the other in execution order. Each sees what the quantized network in
front of it computes and aims at what the float network computes; where its result is added to
another branch, it also makes up for that branch's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Records, Track, digests, untracked
from luciole.ir import Array, Model, Op, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.ends import is_last
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.calibration.positions import Dense, Rows, weight_matrix
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.levels import Fit
from luciole.lquantizer.network.bias import correct_biases
from luciole.lquantizer.network.even_inputs import Disturbances
from luciole.lquantizer.network.preparation import (
    Job,
    Preparation,
    behind,
    floors,
    order_of,
    other_branch,
    prepare,
    present,
    seen_by,
)
from luciole.lquantizer.network.problem import LayerProblem, LearnedLayer, Method, Scope
from luciole.lquantizer.network.rescale import note_factors
from luciole.lquantizer.network.result import Result, Trace
from luciole.lquantizer.network.sampling import Aim, float_rows, float_side, quantized_side
from luciole.lquantizer.network.stored import measure_stored, store_weights
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


def quantize_records(
    model: Model,
    records: Records,
    method: Method,
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
    work, jobs = prepared.work, prepared.jobs
    aims = float_side(prepared, records, track("float network", prepared.count))
    stored = store_weights(prepared, records, method.seed)
    step = track("learning layers", len(jobs))
    left: set[Op] = {op for job in jobs for op in job.group.ops}
    for number in order_of(jobs):
        _learn(prepared, jobs[number], aims[number], left, records, method)
        left.difference_update(jobs[number].group.ops)
        step(1)
    if method.scope.corrects_biases:
        correct_biases(prepared, records, track)
    _measure(prepared, aims, records, track)
    measure_stored(prepared, stored, records)
    finish(work)
    note_factors(work.graph, prepared.factors)
    reports = stored | {job.group.name: job.report for job in jobs if job.report is not None}
    report = Report(in_order(prepared.listed, reports, prepared.skipped))
    report.warnings = [job.warning for job in jobs if job.warning is not None]
    report.stays_float = float_bytes(work)
    return Result(
        work,
        report,
        _latents(jobs),
        {job.group.name: _trace(job, prepared) for job in jobs},
        learned_from=digests(records),
    )


def _trace(job: Job, prepared: Preparation) -> Trace:
    learned = [op.name for op in job.learned]
    divided = prepared.factors.get(job.group.name)
    return Trace(job.group.names, learned, divided, job.with_branch)


def _latents(jobs: Sequence[Job]) -> dict[str, Array]:
    """Gather the float weights [o, n] behind the codes of operators, by their names."""
    return {op.name: job.target.T for job in jobs for op in job.learned if job.target is not None}


def _learn(
    prepared: Preparation,
    job: Job,
    aim: Aim,
    left: set[Op],
    records: Records,
    method: Method,
) -> None:
    """Learn one job on the network as it is by now, and replace its layers."""
    problem = _problem(prepared, job, aim, left, records, method.scope)
    learned = method.learn(problem, job.group.choice)
    job.learned, job.results = replaced(job.group.ops, problem, learned)
    job.target = learned.weights.target if method.scope.together else None
    job.report = _report(job, problem, learned)
    job.report.bytes_before = prepared.sizes[job.group.name]
    if learned.warning is not None:
        job.warning = f"layer {job.group.name!r}: {learned.warning}"


def _problem(
    prepared: Preparation, job: Job, aim: Aim, left: set[Op], records: Records, scope: Scope
) -> LayerProblem:
    """State what is to be learned for a job."""
    # a branch that layers still to be learned stand behind is not yet what it will be
    others = [other_branch(op) if scope.together else None for op in job.group.ops]
    others = [v if v is not None and not behind(v) & left else None for v in others]
    waiting = [one for one in prepared.jobs if one is not job and left.issuperset(one.group.ops)]
    rows, branches, numbers = quantized_side(
        prepared.front, replace(job, others=others), seen_by(waiting), left
    )
    job.with_branch = all(branch is not None for branch in branches)
    problem = problem_of(job, rows, aim, branches, numbers)
    problem = replace(problem, units=prepared.factors.get(job.group.name))
    if scope.float_rows:
        problem = replace(problem, float_rows=float_rows(prepared, job, records))
    return problem


def _measure(prepared: Preparation, aims: Sequence[Aim], records: Records, track: Track) -> None:
    """Enter the error of each layer's output in the finished network, where its method has not
    judged it on held-back rows.
    """
    open_ = [(job, aim) for job, aim in zip(prepared.jobs, aims, strict=True) if not job.is_judged]
    if not open_:
        return
    progress = track("quantized network", prepared.count)
    values = [job.results[0] for job, _ in open_]
    found: list[list[Array]] = [[] for _ in values]
    for _, arrays in watched(prepared.work, values, records, prepared.batch, progress):
        for array, kept in zip(arrays, found, strict=True):
            kept.append(array)
    for (job, aim), arrays in zip(open_, found, strict=True):
        assert job.report is not None, "every job was learned"
        (wanted,) = aim.outputs
        y = np.concatenate(arrays).reshape(wanted.shape)
        job.report.mse, job.report.snr_db = error_of(wanted, y)


def problem_of(
    job: Job,
    rows: Rows,
    aim: Aim,
    branches: Sequence[Array | None],
    records: NDArray[np.intp],
) -> LayerProblem:
    """State what is to be learned for a job's layers, given their input rows, the branches added to
    their results in the quantized network, and each row's record.
    """
    ops = job.group.ops
    targets, lowest = [], []
    for op, own, other, branch in zip(ops, aim.outputs, aim.others, branches, strict=True):
        targets.append(own if other is None or branch is None else own + other - branch)
        lowest.append(floors(op, own, branch))
    cut = [f for f in lowest if f is not None]
    return LayerProblem(
        rows,
        np.concatenate(targets),
        weight_matrix(ops[0]),
        bias_of(ops[0]),
        records,
        is_last(ops[0]) and not present(job),
        job.seed,
        np.concatenate(cut) if len(cut) == len(ops) else None,
    )


def _report(job: Job, problem: LayerProblem, learned: LearnedLayer) -> LayerReport:
    choice = job.group.choice
    report = LayerReport(job.group.name, choice.input_bits, choice.weight_bits)
    report.format = str(choice.levels)
    if learned.inputs is None:
        report.input_bits = None
    else:
        report.input_mse = float(learned.inputs.mse[0])
    if learned.stages:
        job.is_judged = True
        report.mse = learned.stages["output_aware"]
        report.snr_db = snr_db(learned.signal, report.mse)
        report.stages = {name: snr_db(learned.signal, mse) for name, mse in learned.stages.items()}
        report.way = learned.way
        if learned.inputs is not None:
            report.input_histogram = histogram(_inputs(problem))
    error = learned.weights.values().T - problem.weights
    report.weights_mse = float(np.mean(error**2))
    report.bytes_after = constant_bytes(job.learned[0])
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
    found = [replace_layer_bcq(op, basis, code, bias) for op in dense]
    return [op for op, _ in found], [value for _, value in found]


def bias_of(op: Dense) -> Array:
    """Read a layer's bias [o], zeros where it has none."""
    data = None if op.bias is None else op.bias.data
    return np.zeros(len(weight_matrix(op)), np.float32) if data is None else data.reshape(-1)


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
