"""The post-training fit: learn every layer of a network so that its OUTPUT stays close, from
unlabelled data.

Layers are learned one after the other in execution order. Each sees what the quantized network in
front of it computes and aims at what the float network computes; where its result is added to
another branch, it also makes up for that branch's error.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Op, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.calibration.positions import Dense, Rows, weight_matrix
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.config import Recipe
from luciole.lquantizer.formats.levels import Fit
from luciole.lquantizer.methods.output_aware import Learned, Task, learn
from luciole.lquantizer.methods.published import Result, Track, untracked
from luciole.lquantizer.network.equalize import along, depth, divide, divided, source
from luciole.lquantizer.network.layers import constant_bytes
from luciole.lquantizer.network.measure import Trace
from luciole.lquantizer.network.preparation import (
    Job,
    Preparation,
    behind,
    floors,
    is_last,
    order_of,
    other_branch,
    prepare,
)
from luciole.lquantizer.network.sampling import Aim, float_side, quantized_side
from luciole.lquantizer.report import LayerReport, Report, histogram, in_order, snr_db
from luciole.lquantizer.rewrite.bcq import replace_layer_bcq
from luciole.lquantizer.rewrite.learned_levels import Parameters, finish, replace_layers
from luciole.schema.enums import ActivationFunctionType


def fit_records(
    model: Model,
    records: Records,
    recipe: Recipe | None = None,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
) -> Result:
    """Quantize every layer that the recipe wants and that qualifies; the given model stays as it
    is.

    ``records`` are unlabelled samples by input name, the first axis counting them. ``unroll`` turns
    LSTMs into dense layers first, which then are quantized too; their state starts at zero in each
    run. Raises QuantizeError when nothing qualifies or the data cannot be used.
    """
    begun = time.perf_counter()
    recipe, track = recipe or Recipe(), track or untracked
    prepared = prepare(model, records, recipe, seed, unroll)
    work, jobs = prepared.work, prepared.jobs
    aims = float_side(prepared, records, track("float network", prepared.count))
    reports: dict[str, LayerReport] = {}
    step = track("learning layers", len(jobs))
    left: set[Op] = {op for job in jobs for op in job.group.ops}
    for number in order_of(jobs):
        job = jobs[number]
        learned = _learn(prepared, job, aims[number], left, records)
        learned.bytes_before = prepared.sizes[job.group.name]
        reports[job.group.name] = learned
        left.difference_update(job.group.ops)
        step(1)
    _correct_biases(prepared, records)
    finish(work)
    report = Report(in_order(prepared.listed, reports, prepared.skipped))
    report.seconds = time.perf_counter() - begun
    latents = {
        op.name: job.target.T for job in jobs for op in job.learned if job.target is not None
    }
    traces = {
        job.group.name: Trace(
            job.group.names, [op.name for op in job.learned], job.scales, job.with_branch
        )
        for job in jobs
    }
    return Result(work, report, latents, traces)


def _learn(
    prepared: Preparation, job: Job, aim: Aim, left: set[Op], records: Records
) -> LayerReport:
    """Learn one job on the network as it is by now, and replace its layers."""
    ops = job.group.ops
    # a branch that layers still to be learned stand behind is not yet what it will be
    others = [other_branch(op) for op in ops]
    others = [v if v is not None and not behind(v) & left else None for v in others]
    rows, branches, numbers = quantized_side(
        prepared.work, replace(job, others=others), records, prepared.batch
    )
    makers = {op: maker for maker in prepared.jobs for op in maker.learned}
    job.with_branch = all(branch is not None for branch in branches)
    task = task_of(job, rows, aim, branches, numbers, makers)
    learned = learn(task)
    if learned.scales is not None:
        _divide_input(job, learned.scales, makers)
    job.learned = _replaced(ops, learned)
    job.target = learned.weights.target
    return _report(job, task, learned, job.learned[0])


def _divide_input(job: Job, scales: Array, makers: Mapping[Op, Job]) -> None:
    """Let the channels of a job's input be divided by scales where they are made."""
    (op,) = job.group.ops
    front = source(op, makers)
    assert front is not None, "only a layer behind a source has scales"
    divide(front, op, scales)
    if front in makers:
        maker = makers[front]
        assert maker.target is not None, "a learned job has float weights behind its codes"
        maker.target, maker.scales = np.asarray(maker.target / scales), scales


def task_of(
    job: Job,
    rows: Rows,
    aim: Aim,
    branches: Sequence[Array | None],
    records: NDArray[np.intp],
    learned: Container[Op],
) -> Task:
    """What is to be learned for a job's layers, given their input rows, the branches added to their
    results in the quantized network, each row's record, and which operators are learned too.
    """
    ops, choice = job.group.ops, job.group.choice
    targets, lowest = [], []
    for op, own, other, branch in zip(ops, aim.outputs, aim.others, branches, strict=True):
        targets.append(own if other is None or branch is None else own + other - branch)
        lowest.append(floors(op, own, branch))
    cut = [f for f in lowest if f is not None]
    alone = len(ops) == 1 and source(ops[0], learned) is not None
    return Task(
        rows,
        np.concatenate(targets),
        weight_matrix(ops[0]),
        bias_of(ops[0]),
        records,
        None if choice.weights_only else choice.input_bits,
        choice.weight_bits,
        is_last(ops[0]),
        job.seed,
        np.concatenate(cut) if len(cut) == len(ops) else None,
        depth(ops[0]) if alone else None,
    )


def _report(job: Job, task: Task, learned: Learned, op: Op) -> LayerReport:
    report = LayerReport(job.group.name, task.input_bits, task.weight_bits)
    report.mse = learned.stages["output_aware"]
    report.snr_db = snr_db(learned.signal, report.mse)
    report.stages = {name: snr_db(learned.signal, mse) for name, mse in learned.stages.items()}
    report.way = learned.way
    if learned.inputs is not None:
        report.input_mse = float(learned.inputs.mse[0])
        report.input_histogram = histogram(_inputs(task, learned))
    scales = 1 if learned.scales is None else along(learned.scales, task.weights.shape[1])
    report.weights_mse = float(np.mean((learned.weights.values().T / scales - task.weights) ** 2))
    report.bytes_after = constant_bytes(op)
    return report


def _inputs(task: Task, learned: Learned) -> Array:
    """The inputs of a layer that lie inside of the image: [any]."""
    rows = task.rows if learned.scales is None else divided(task.rows, learned.scales)
    return rows.values.reshape(-1) if rows.inside is None else rows.values[rows.inside]


def _replaced(ops: Sequence[Dense], learned: Learned) -> list[Op]:
    """The new operators: BCQ_FULLY_CONNECTED where inputs stay float, else learned levels."""
    if learned.inputs is not None:
        return [op for op, _ in replace_layers(ops, _parameters(learned, learned.inputs))]
    basis, code = learned.weights.basis, learned.weights.code.T
    return [
        replace_layer_bcq(op, basis, code, learned.bias)[0]
        for op in ops
        if isinstance(op, FullyConnected)
    ]


def _correct_biases(prepared: Preparation, records: Records) -> None:
    """Give the outputs of layers that stay float the mean they had in the float network."""
    graph, twins = prepared.work.graph, prepared.twins
    for op in graph.ops:
        if op.name not in prepared.skipped or not isinstance(op, FullyConnected | Conv2D):
            continue
        bias = None if op.bias is None else op.bias.data
        if bias is None or op.activation != ActivationFunctionType.NONE or op.output not in twins:
            continue
        wanted = _mean(prepared.reference, twins[op.output], bias.size, records, prepared.batch)
        shift = wanted - _mean(prepared.work, op.output, bias.size, records, prepared.batch)
        corrected = (bias.reshape(-1) + shift).astype(np.float32).reshape(bias.shape)
        op.bias = graph.add_constant(graph.unique_name(f"{op.name}/bias"), corrected)


def _mean(model: Model, value: Value, channels: int, records: Records, batch: int) -> Array:
    """The mean of a tensor along its last axis' elements: [channels]."""
    total, count = np.zeros(channels), 0
    for _, (array,) in watched(model, [value], records, batch):
        rows = array.reshape(-1, channels)
        total += rows.sum(0, dtype=np.float64)
        count += len(rows)
    return total / count


def bias_of(op: Dense) -> Array:
    """A layer's bias [o], zeros where it has none."""
    data = None if op.bias is None else op.bias.data
    return np.zeros(len(weight_matrix(op)), np.float32) if data is None else data.reshape(-1)


def _parameters(learned: Learned, inputs: Fit) -> Parameters:
    offset = learned.weights.offset
    return Parameters(
        inputs.basis[0],
        learned.weights.basis,
        learned.weights.code.T,
        float(inputs.offset[0]),
        offset if np.any(offset) else None,
        learned.bias,
    )
