"""The post-training fit: learn every layer of a network so that its OUTPUT stays close, from
unlabelled data.

Layers are learned one after the other in execution order. Each sees what the quantized network in
front of it computes and aims at what the float network computes; where its result is added to
another branch, it also makes up for that branch's error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Progress, Records, batch_size, check_records
from luciole.ir import Array, Model, Op, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.passes.unroll_lstm import unroll_lstm
from luciole.lquantizer.bcq import replace_layer_bcq
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
from luciole.lquantizer.qem import Fit
from luciole.lquantizer.quantize import Result, Track, untracked
from luciole.lquantizer.recipe import Recipe
from luciole.lquantizer.report import LayerReport, Report, in_order, snr_db
from luciole.lquantizer.rewrite import Parameters, finish, replace_layers
from luciole.schema.enums import ActivationFunctionType

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
    """A group of layers on its way; for each layer the other branch that its result is added to."""

    group: Group
    others: list[Value | None]
    seed: int
    positions: int
    learned: list[Op] = field(default_factory=list)
    target: Array | None = None


@dataclass
class _Aim:
    """What the float network computes at a job's sampled positions: the layers' outputs [rows, o],
    and the other branches there, for each layer that has one.
    """

    outputs: list[Array]
    others: list[Array | None]


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
    count = check_records(model.graph, records)
    check_finite(records)
    work = model.clone()
    if unroll and unroll_lstm(work.graph):
        remove_dead(work.graph)
    listed = work.clone()
    groups, skipped = find_groups(work.graph, recipe)
    check_layers([g.name for g in groups], skipped, recipe)
    sizes = {g.name: sum(constant_bytes(op) for op in g.ops[:1]) for g in groups}
    for group in groups:
        for op in group.ops:
            split_activation(work.graph, op)
    jobs = [_job(group, number, count, seed) for number, group in enumerate(groups)]
    reference = work.clone()
    batch = batch_size(Interpreter(reference), records)
    twins = dict(zip(work.graph.values, reference.graph.values, strict=True))
    aims = _float_side(reference, jobs, twins, records, batch, track("float network", count))
    reports: dict[str, LayerReport] = {}
    step = track("learning layers", len(jobs))
    left: set[Op] = {op for job in jobs for op in job.group.ops}
    for number in _order(jobs):
        job = jobs[number]
        learned = _learn(work, job, aims[number], left, records, batch)
        learned.bytes_before = sizes[job.group.name]
        reports[job.group.name] = learned
        left.difference_update(job.group.ops)
        step(1)
    _correct_biases(work, reference, list(skipped), twins, records, batch)
    finish(work)
    report = Report(in_order(listed, reports, skipped))
    report.seconds = time.perf_counter() - begun
    latents = {
        op.name: job.target.T for job in jobs for op in job.learned if job.target is not None
    }
    return Result(work, report, latents)


def _job(group: Group, number: int, count: int, seed: int) -> _Job:
    rows = max(1, _ROWS // (count * len(group.ops)))
    others = [_other_branch(op) for op in group.ops]
    return _Job(group, others, seed + number, min(rows, _MOST_POSITIONS))


def _other_branch(op: Op) -> Value | None:
    """What an ADD adds to this result."""
    users = op.output.users
    if len(users) != 1 or not isinstance(users[0].op, Add) or op.output.is_output:
        return None
    other = users[0].op.operands[1 - users[0].slot]
    if other is None or other.producer is None or other.shape != op.output.shape:
        return None
    return other


def _behind(value: Value) -> set[Op]:
    """Every operator that a tensor depends on."""
    found: set[Op] = set()
    waiting = [value]
    while waiting:
        producer = waiting.pop().producer
        if producer is not None and producer.op not in found:
            found.add(producer.op)
            waiting.extend(v for v in producer.op.operands if v is not None)
    return found


def _order(jobs: Sequence[_Job]) -> list[int]:
    """Execution order, but where the results of two layers are added the smaller goes first: the
    larger can make up for more.
    """
    makers: dict[Op, int] = {op: n for n, job in enumerate(jobs) for op in job.group.ops}
    order: list[int] = []
    seen: set[int] = set()

    def visit(number: int) -> None:
        if number in seen:  # layers that share weights may stand in front of each other's steps
            return
        seen.add(number)
        first = jobs[number].group.ops[0]
        needed = {makers[op] for op in _behind(first.input) & makers.keys()}
        for before in (*sorted(needed), *_smaller_partners(jobs, number, makers)):
            visit(before)
        order.append(number)

    for number in range(len(jobs)):
        visit(number)
    return order


def _smaller_partners(jobs: Sequence[_Job], number: int, makers: dict[Op, int]) -> Iterator[int]:
    """Jobs with fewer weights whose results are added to this job's, and which do not need it."""
    for own, other in _pairs(jobs[number]):
        if other is None or other.producer is None or own in _behind(other):
            continue
        partner = makers.get(other.producer.op)
        if partner is not None:
            size = weight_matrix(jobs[partner].group.ops[0]).size
            yield from [partner] if size < weight_matrix(own).size else []


def _float_side(
    model: Model,
    jobs: Sequence[_Job],
    twins: dict[Value, Value],
    records: Records,
    batch: int,
    progress: Progress,
) -> list[_Aim]:
    """What each job aims at, from one run of the float network."""
    values = [v for job in jobs for v in (*(op.output for op in job.group.ops), *_present(job))]
    kept: list[list[Array]] = [[] for _ in values]
    for part, arrays in watched(model, [twins[v] for v in values], records, batch, progress):
        found = iter(zip(arrays, kept, strict=True))
        for job in jobs:
            for op in (*job.group.ops, *(op for op, v in _pairs(job) if v is not None)):
                array, rows = next(found)
                rows.append(_sampled(job, op, array, part))
    joined = iter([np.concatenate(rows) for rows in kept])
    aims = []
    for job in jobs:
        outputs = [next(joined) for _ in job.group.ops]
        aims.append(_Aim(outputs, [None if v is None else next(joined) for v in job.others]))
    return aims


def _pairs(job: _Job) -> Iterator[tuple[Dense, Value | None]]:
    return zip(job.group.ops, job.others, strict=True)


def _present(job: _Job) -> list[Value]:
    return [v for v in job.others if v is not None]


def _sampled(job: _Job, op: Dense, y: Array, part: range) -> Array:
    """A result of a job's layer, or what is added to it, at the sampled positions."""
    outputs = len(weight_matrix(op))
    picks = pick(y[0].size // outputs, part, job.positions, job.seed)
    return output_rows(y, outputs, picks)


def _learn(
    model: Model, job: _Job, aim: _Aim, left: set[Op], records: Records, batch: int
) -> LayerReport:
    """Learn one job on the network as it is by now, and replace its layers."""
    ops, choice = job.group.ops, job.group.choice
    # a branch that layers still to be learned stand behind is not yet what it will be
    others = [_other_branch(op) for op in ops]
    others = [v if v is not None and not _behind(v) & left else None for v in others]
    rows, branches, numbers = _quantized_side(model, replace(job, others=others), records, batch)
    wanted = []
    for own, other, branch in zip(aim.outputs, aim.others, branches, strict=True):
        wanted.append(own if other is None or branch is None else own + other - branch)
    task = Task(
        rows,
        np.concatenate(wanted),
        weight_matrix(ops[0]),
        _bias(ops[0]),
        numbers,
        None if choice.weights_only else choice.input_bits,
        choice.weight_bits,
        _is_last(ops[0]),
        job.seed,
    )
    learned = learn(task)
    job.learned = _replaced(ops, learned)
    job.target = learned.weights.target
    return _report(job, task, learned, job.learned[0])


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


def _report(job: _Job, task: Task, learned: Learned, op: Op) -> LayerReport:
    report = LayerReport(job.group.name, task.input_bits, task.weight_bits)
    signal = float(np.mean(np.square(task.targets, dtype=np.float64)))
    report.mse = learned.stages["output_aware"]
    report.snr_db = snr_db(signal, report.mse)
    report.stages = {name: snr_db(signal, mse) for name, mse in learned.stages.items()}
    report.way = learned.way
    report.input_mse = None if learned.inputs is None else float(learned.inputs.mse[0])
    report.weights_mse = float(np.mean((learned.weights.values().T - task.weights) ** 2))
    report.bytes_after = constant_bytes(op)
    return report


def _quantized_side(
    model: Model, job: _Job, records: Records, batch: int
) -> tuple[Rows, list[Array | None], NDArray[np.intp]]:
    """Input rows of all of a job's layers, the branch added to each at the same positions, and each
    row's record.
    """
    ops = job.group.ops
    sides = [_Side([], [], []) for _ in ops]
    values = [*(op.input for op in ops), *_present(job)]
    for part, arrays in watched(model, values, records, batch):
        added = iter(arrays[len(ops) :])
        for (op, other), x, side in zip(_pairs(job), arrays[: len(ops)], sides, strict=True):
            picks = pick(positions(op, x), part, job.positions, job.seed)
            side.rows.append(input_rows(op, x, picks))
            side.records.append(np.repeat(np.arange(part.start, part.stop), picks.shape[1]))
            if other is not None:
                side.branch.append(_sampled(job, op, next(added), part))
    rows = [r for side in sides for r in side.rows]
    masks = [r.inside for r in rows if r.inside is not None]
    return (
        Rows(np.concatenate([r.values for r in rows]), np.concatenate(masks) if masks else None),
        [np.concatenate(side.branch) if side.branch else None for side in sides],
        np.concatenate([n for side in sides for n in side.records]),
    )


def _correct_biases(
    model: Model,
    reference: Model,
    names: Sequence[str],
    twins: dict[Value, Value],
    records: Records,
    batch: int,
) -> None:
    """Give the outputs of layers that stay float the mean they had in the float network."""
    for op in model.graph.ops:
        if op.name not in names or not isinstance(op, FullyConnected | Conv2D):
            continue
        bias = None if op.bias is None else op.bias.data
        if bias is None or op.activation != ActivationFunctionType.NONE or op.output not in twins:
            continue
        channels = bias.size
        wanted = _mean(reference, twins[op.output], channels, records, batch)
        shift = wanted - _mean(model, op.output, channels, records, batch)
        name = model.graph.unique_name(f"{op.name}/bias")
        corrected = (bias.reshape(-1) + shift).astype(np.float32)
        op.bias = model.graph.add_constant(name, corrected.reshape(bias.shape))


def _mean(model: Model, value: Value, channels: int, records: Records, batch: int) -> Array:
    """The mean of a tensor along its last axis' elements: [channels]."""
    total, count = np.zeros(channels), 0
    for _, (array,) in watched(model, [value], records, batch):
        rows = array.reshape(-1, channels)
        total += rows.sum(0, dtype=np.float64)
        count += len(rows)
    return total / count


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
