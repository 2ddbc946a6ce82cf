"""Prepare a network: groups of layers in the order in which they are learned, and the branches
added to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.records import Records, check_records
from luciole.ir import Array, Model, Op, Value
from luciole.ir.analysis.constancy import constant_bytes, is_fixed
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.ops.activations import FUSED_AS, LIMITS
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.folding.fold_constants import FoldConstants
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.value import Use
from luciole.kernels.core import evaluation
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.positions import Dense, weight_matrix
from luciole.lquantizer.calibration.watch import batch_for, check_finite
from luciole.lquantizer.network.even_inputs import Disturbances, even_inputs
from luciole.lquantizer.network.layers import Group, Stored, check_layers, find_groups, find_stored
from luciole.lquantizer.network.problem import Method
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.report import LayerReport
from luciole.schema.enums import ActivationFunctionType

_ROWS = 65_536
"""Rows that a layer is fitted on at the most; more did not help at 300 to 4,000 records."""
_MOST_POSITIONS = 64
"""Output positions taken from one record: neighbours say much the same."""


@dataclass
class Job:
    """A group of layers on its way; for each layer the other branch that its result is added to."""

    group: Group
    others: list[Value | None]
    seed: int
    positions: int | None
    """Output positions taken from one record at the most; None: all."""
    float_inputs: list[Value] = field(default_factory=list)
    """Of its layers, in the float twin."""
    learned: list[Op] = field(default_factory=list)
    target: Array | None = None
    with_branch: bool = False
    """Whether it made up for the error of another branch."""
    results: list[Value] = field(default_factory=list)
    """What took the place of its layers' results."""
    report: LayerReport | None = None
    warning: str | None = None
    is_judged: bool = False
    """Whether its method measured its error on held-back rows."""


@dataclass
class Preparation:
    """A network ready to be learned: the one that layers are replaced in, its float twin, the jobs,
    layers whose weights are stored as levels, what a report needs of the network as it was, and by
    name what the channels of tensors are divided by since then.
    """

    work: Model
    reference: Model
    listed: Model
    jobs: list[Job]
    stored: list[Stored]
    skipped: dict[str, str]
    sizes: dict[str, int]
    twins: dict[Value, Value]
    count: int
    batch: int
    factors: dict[str, Array]
    front: Front
    """The network that layers are replaced in, as far as it was run."""


def prepare(
    model: Model,
    records: Records,
    config: Config,
    method: Method,
    unroll: bool,
    known: Disturbances | None = None,
) -> Preparation:
    """Find the layers, let their activations stand alone, and pair the network with its float twin.

    Raises QuantizeError for a network that is quantized already, when nothing qualifies or the data
    cannot be used.
    """
    work = real_network(model)
    count = check_records(work.graph, records)
    check_finite(records)
    if unroll and unroll_unidirseqlstm(work.graph):
        remove_dead(work.graph)
    if any(_is_spare(op) for op in work.graph.ops):
        FoldConstants(evaluation.evaluate)(work.graph)
        remove_dead(work.graph)
    listed = work.clone()
    scope = method.scope
    groups, skipped = find_groups(work.graph, config, scope)
    stored = find_stored(work.graph, config, skipped) if scope.together else []
    others = [op for one in stored for op in one.ops]
    names = [*(name for g in groups for name in g.names), *(op.name for op in others)]
    check_layers(work.graph, names, skipped, config)
    sizes = {g.name: constant_bytes(g.ops[0]) for g in groups}
    sizes |= {op.name: constant_bytes(op) for op in others}
    batch = batch_for(work, records)
    how = (records, batch, method.seed, known)
    factors = even_inputs(work, groups, *how) if scope.rescales else {}
    for op in (op for group in groups for op in group.ops if scope.together):
        split_activation(work.graph, op)
    most = _MOST_POSITIONS if scope.together else None
    jobs = [_job(g, number, count, method.seed, most) for number, g in enumerate(groups)]
    reference = work.clone()
    twins = dict(zip(work.graph.values, reference.graph.values, strict=True))
    for job in jobs:  # now, because replacing one layer gives the next another input
        job.float_inputs = [twins[op.input] for op in job.group.ops]
    front = Front(work, records, batch)
    return Preparation(
        work, reference, listed, jobs, stored, skipped, sizes, twins, count, batch, factors, front
    )


def _is_spare(op: Op) -> bool:
    """Tell whether a layer does the same in each run and would keep float weights for it that other
    layers share: the first step of an unrolled recurrent layer, whose state is 0.
    """
    weights = weight_constant(op) if has_weights(op) else None
    data = None if weights is None else op.operands[0]
    if weights is None or data is None or not is_fixed(data):
        return False
    return any(not is_fixed(user.op.output) for user in weights.users)


def _job(group: Group, number: int, count: int, seed: int, most: int | None) -> Job:
    if most is None:
        return Job(group, [None] * len(group.ops), seed + number, None)
    rows = max(1, _ROWS // (count * len(group.ops)))
    others = [other_branch(op) for op in group.ops]
    return Job(group, others, seed + number, min(rows, most))


def other_branch(op: Op) -> Value | None:
    """Find what an ADD adds to a result."""
    use = other_use(op)
    return None if use is None else use.op.operands[use.slot]


def other_use(op: Op) -> Use | None:
    """Find where an ADD reads what it adds to a result."""
    output = op.results[0]
    users = output.users
    if len(users) != 1 or not isinstance(users[0].op, Add) or output.is_output:
        return None
    use = Use(users[0].op, 1 - users[0].slot)
    other = use.op.operands[use.slot]
    if other is None or other.producer is None or other.shape != output.shape:
        return None
    return use


def floors(op: Op, outputs: Array, branch: Array | None = None) -> Array | None:
    """Find the values that each of a layer's outputs [r, o] may as well fall below, because a RELU
    follows, be it behind the ADD of a branch [r, o]; None where none does.
    """
    floor = _floor_behind(op.results[0])
    if floor is not None:
        return np.full_like(outputs, floor)
    if branch is None:
        return None
    total = op.results[0].users[0].op
    assert isinstance(total, Add), "a branch is what an ADD adds"
    floor = floor_of(total.activation)
    floor = _floor_behind(total.output) if floor is None else floor
    return None if floor is None else np.asarray(floor - branch)


def _floor_behind(value: Value) -> float | None:
    """Find what a RELU that alone reads a tensor makes of everything below it."""
    if value.is_output or len(value.users) != 1:
        return None
    return floor_of(FUSED_AS.get(type(value.users[0].op), ActivationFunctionType.NONE))


def floor_of(activation: ActivationFunctionType) -> float | None:
    """Find what an activation makes of everything below it, None where it cuts off nothing
    there.
    """
    low, _ = LIMITS.get(activation, (-np.inf, np.inf))
    return low if np.isfinite(low) else None


def behind(value: Value) -> set[Op]:
    """Find every operator that a tensor depends on."""
    found: set[Op] = set()
    waiting = [value]
    while waiting:
        producer = waiting.pop().producer
        if producer is not None and producer.op not in found:
            found.add(producer.op)
            waiting.extend(v for v in producer.op.operands if v is not None)
    return found


def order_of(jobs: Sequence[Job]) -> list[int]:
    """Say in which order jobs are learned, as ``learning_order`` has it."""
    sizes = [weight_matrix(job.group.ops[0]).size for job in jobs]
    return learning_order([job.group.ops for job in jobs], [job.others for job in jobs], sizes)


def learning_order(
    groups: Sequence[Sequence[Op]], others: Sequence[Sequence[Value | None]], sizes: Sequence[int]
) -> list[int]:
    """Say in which order groups of layers are learned, given the branches added to their results
    and how many weights they have: execution order, but where the results of two layers are added
    the smaller goes first, for the larger can make up for more.
    """
    makers: dict[Op, int] = {op: n for n, ops in enumerate(groups) for op in ops}
    order: list[int] = []
    seen: set[int] = set()

    def partners(number: int) -> Iterator[int]:
        """Find groups of fewer weights whose results are added, and which do not need
        this one's.
        """
        for own, other in zip(groups[number], others[number], strict=True):
            if other is None or other.producer is None or own in behind(other):
                continue
            partner = makers.get(other.producer.op)
            if partner is not None and sizes[partner] < sizes[number]:
                yield partner

    def visit(number: int) -> None:
        if number in seen:  # layers that share weights may stand in front of each other's steps
            return
        seen.add(number)
        given = groups[number][0].operands[0]
        needed = () if given is None else {makers[op] for op in behind(given) & makers.keys()}
        for before in (*sorted(needed), *partners(number)):
            visit(before)
        order.append(number)

    for number in range(len(groups)):
        visit(number)
    return order


def pairs(job: Job) -> Iterator[tuple[Dense, Value | None]]:
    """Pair a job's layers with the branches added to their results."""
    return zip(job.group.ops, job.others, strict=True)


def seen_by(jobs: Iterable[Job]) -> list[Value]:
    """List what the layers of jobs read, and the branches added to their results."""
    return [v for job in jobs for v in (*(op.input for op in job.group.ops), *present(job))]


def present(job: Job) -> list[Value]:
    """List the branches there are."""
    return [v for v in job.others if v is not None]
