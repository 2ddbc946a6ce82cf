"""The post-training fit: learn every layer of a network so that its OUTPUT stays close, from
unlabelled data.

Layers are learned one after the other in execution order. Each sees what the quantized network in
front of it computes and aims at what the float network computes; where its result is added to
another branch, it also makes up for that branch's error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Progress, Records, batch_size, check_records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.passes.split_activation import split_activation
from luciole.lquantizer.calibration import check_finite, watched
from luciole.lquantizer.fit_layer import Learned, Task, learn
from luciole.lquantizer.geometry import (
    Dense,
    Rows,
    input_rows,
    output_rows,
    pick,
    positions,
    weight_matrix,
)
from luciole.lquantizer.layers import Group, check_layers, constant_bytes, find_groups
from luciole.lquantizer.quantize import Result, Track, untracked
from luciole.lquantizer.recipe import Recipe
from luciole.lquantizer.report import LayerReport, Report, in_order, snr_db
from luciole.lquantizer.rewrite import Parameters, finish, replace_layers

_ROWS = 65_536
"""Rows that a layer is fitted on at the most; more did not help at 300 to 4,000 records."""
_MOST_POSITIONS = 64
"""Output positions taken from one record: neighbours say much the same."""


@dataclass
class _Side:
    """What one operator's rows are gathered in, batch by batch."""

    rows: list[Rows]
    branch: list[Array]
    records: list[NDArray[np.intp]]


@dataclass
class _Job:
    """A group of layers on its way, with the other branches that its results are added to."""

    group: Group
    others: list[Value | None]
    seed: int
    positions: int


def fit_records(
    model: Model,
    records: Records,
    recipe: Recipe | None = None,
    seed: int = 0,
    track: Track | None = None,
) -> Result:
    """Quantize every layer that the recipe wants and that qualifies; the given model stays as it
    is.

    ``records`` are unlabelled samples by input name, the first axis counting them. Raises
    QuantizeError when nothing qualifies or the data cannot be used.
    """
    begun = time.perf_counter()
    recipe, track = recipe or Recipe(), track or untracked
    count = check_records(model.graph, records)
    check_finite(records)
    work = model.clone()
    groups, skipped = find_groups(work.graph, recipe)
    check_layers([g.name for g in groups], skipped, recipe)
    sizes = {g.name: sum(constant_bytes(op) for op in g.ops[:1]) for g in groups}
    for group in groups:
        for op in group.ops:
            split_activation(work.graph, op)
    jobs = [_job(work.graph, group, number, count, seed) for number, group in enumerate(groups)]
    reference = work.clone()
    batch = batch_size(Interpreter(reference), records)
    twins = dict(zip(work.graph.values, reference.graph.values, strict=True))
    targets = _float_side(reference, jobs, twins, records, batch, track("float network", count))
    reports: dict[str, LayerReport] = {}
    step = track("learning layers", len(jobs))
    for job, wanted in zip(jobs, targets, strict=True):
        reports[job.group.name] = _learn(work, job, wanted, records, batch)
        reports[job.group.name].bytes_before = sizes[job.group.name]
        step(1)
    finish(work)
    report = Report(in_order(model, reports, skipped))
    report.seconds = time.perf_counter() - begun
    return Result(work, report)


def _job(graph: Graph, group: Group, number: int, count: int, seed: int) -> _Job:
    rows = max(1, _ROWS // (count * len(group.ops)))
    others = [_other_branch(graph, op) for op in group.ops]
    return _Job(group, others, seed + number, min(rows, _MOST_POSITIONS))


def _other_branch(graph: Graph, op: Op) -> Value | None:
    """What an ADD adds to this result, where it is computed before this operator runs."""
    users = op.output.users
    if len(users) != 1 or not isinstance(users[0].op, Add) or op.output.is_output:
        return None
    other = users[0].op.operands[1 - users[0].slot]
    if other is None or other.producer is None or other.shape != op.output.shape:
        return None
    return other if graph.ops.index(other.producer.op) < graph.ops.index(op) else None


def _float_side(
    model: Model,
    jobs: Sequence[_Job],
    twins: dict[Value, Value],
    records: Records,
    batch: int,
    progress: Progress,
) -> list[Array]:
    """What each job aims at before its other branches' errors are known: float outputs plus float
    branches at the sampled positions, [rows, o] for each job.
    """
    places = [[v for v in _seen(job) if v is not None] for job in jobs]
    values = [twins[v] for place in places for v in place]
    kept: list[list[list[Array]]] = [[[] for _ in job.group.ops] for job in jobs]
    for part, arrays in watched(model, values, records, batch, progress):
        found = iter(arrays)
        for job, place, by_op in zip(jobs, places, kept, strict=True):
            by_value = {v: next(found) for v in place}
            for rows, sums in zip(by_op, _sums(job, by_value, part), strict=True):
                rows.append(sums)
    return [np.concatenate([a for rows in by_op for a in rows]) for by_op in kept]


def _seen(job: _Job) -> list[Value | None]:
    return [*(op.output for op in job.group.ops), *job.others]


def _sums(job: _Job, by_value: dict[Value, Array], part: range) -> list[Array]:
    """For each of a job's operators, outputs plus other branch at the sampled positions."""
    parts = []
    for op, other in zip(job.group.ops, job.others, strict=True):
        outputs = len(weight_matrix(op))
        y = by_value[op.output]
        picks = pick(y[0].size // outputs, part, job.positions, job.seed)
        rows = output_rows(y, outputs, picks)
        parts.append(rows if other is None else rows + output_rows(by_value[other], outputs, picks))
    return parts


def _learn(model: Model, job: _Job, wanted: Array, records: Records, batch: int) -> LayerReport:
    """Learn one job on the network as it is by now, and replace its layers."""
    ops, choice = job.group.ops, job.group.choice
    rows, branches, numbers = _quantized_side(model, job, records, batch)
    task = Task(
        rows,
        wanted - branches,
        weight_matrix(ops[0]),
        _bias(ops[0]),
        numbers,
        choice.input_bits,
        choice.weight_bits,
        _is_last(ops[0]),
        job.seed,
    )
    learned = learn(task)
    (op, _), *_ = replace_layers(ops, _parameters(learned))
    report = LayerReport(job.group.name, choice.input_bits, choice.weight_bits)
    signal = float(np.mean(np.square(task.targets, dtype=np.float64)))
    report.mse = learned.stages["output_aware"]
    report.snr_db = snr_db(signal, report.mse)
    report.stages = {name: snr_db(signal, mse) for name, mse in learned.stages.items()}
    report.way = learned.way
    report.input_mse = float(learned.inputs.mse[0])
    report.weights_mse = float(np.mean((learned.weights.values().T - task.weights) ** 2))
    report.bytes_after = constant_bytes(op)
    return report


def _quantized_side(
    model: Model, job: _Job, records: Records, batch: int
) -> tuple[Rows, Array, NDArray[np.intp]]:
    """Input rows, other branches' values at the same positions, and each row's record."""
    ops = job.group.ops
    job = replace(job, others=[_other_branch(model.graph, op) for op in ops])  # as they are by now
    branches = [v for v in job.others if v is not None]
    sides = [_Side([], [], []) for _ in ops]
    for part, arrays in watched(model, [*(op.input for op in ops), *branches], records, batch):
        others = iter(arrays[len(ops) :])
        for op, x, other, side in zip(ops, arrays[: len(ops)], job.others, sides, strict=True):
            picks = pick(positions(op, x), part, job.positions, job.seed)
            outputs = len(weight_matrix(op))
            zeros = np.zeros((picks.size, outputs), np.float32)
            side.rows.append(input_rows(op, x, picks))
            side.branch.append(
                zeros if other is None else output_rows(next(others), outputs, picks)
            )
            side.records.append(np.repeat(np.arange(part.start, part.stop), picks.shape[1]))
    rows = [r for side in sides for r in side.rows]
    masks = [r.inside for r in rows if r.inside is not None]
    return (
        Rows(np.concatenate([r.values for r in rows]), np.concatenate(masks) if masks else None),
        np.concatenate([b for side in sides for b in side.branch]),
        np.concatenate([n for side in sides for n in side.records]),
    )


def _bias(op: Dense) -> Array:
    data = None if op.bias is None else op.bias.data
    return np.zeros(len(weight_matrix(op)), np.float32) if data is None else data.reshape(-1)


def _is_last(op: Op) -> bool:
    """Whether a layer's result is the network's answer: an output, or what a SOFTMAX turns into
    one.
    """
    return op.output.is_output or any(
        isinstance(use.op, Softmax | LogSoftmax) for use in op.output.users
    )


def _parameters(learned: Learned) -> Parameters:
    offset = learned.weights.offset
    return Parameters(
        learned.inputs.basis[0],
        learned.weights.basis,
        learned.weights.code.T,
        float(learned.inputs.offset[0]),
        offset if np.any(offset) else None,
        learned.bias,
    )
