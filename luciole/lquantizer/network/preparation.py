"""Prepare a network: groups of layers in execution order, and the branches added to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, check_records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.analysis.constancy import constant_bytes, is_fixed
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.folding.fold_constants import FoldConstants
from luciole.ir.passes.split_activation import split_activation
from luciole.kernels.core import evaluation
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import Sampling
from luciole.lquantizer.calibration.watch import batch_for, check_finite
from luciole.lquantizer.network.branches import Branches
from luciole.lquantizer.network.even_inputs import Disturbances, even_inputs
from luciole.lquantizer.network.layers import Group, Stored, check_layers, find_groups, find_stored
from luciole.lquantizer.network.problem import LevelsMethod
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.network.walk import Job, Network

_ROWS = 65_536
"""Rows that a layer is fitted on at the most; more did not help at 300 to 4,000 records."""
_MOST_POSITIONS = 64
"""Output positions taken from one record: neighbours say much the same."""


@dataclass
class Preparation:
    """A network ready to be learned: the one that layers are replaced in, its float twin, layers by
    the name of the first that shares their weights, and what is to be learned of them, layers whose
    weights are stored as levels, what a report needs of the network as it was, and by name what the
    channels of tensors are divided by since then.
    """

    work: Model
    network: Network
    listed: Model
    groups: dict[str, Group]
    jobs: list[Job[Choice]]
    stored: list[Stored]
    skipped: dict[str, str]
    sizes: dict[str, int]
    twins: dict[Value, Value]
    count: int
    batch: int
    factors: dict[str, Array]

    @property
    def reference(self) -> Model:
        """The float twin."""
        return self.network.reference


def prepare(
    model: Model,
    records: Records,
    config: Config,
    method: LevelsMethod,
    unroll: bool,
    known: Disturbances | None = None,
) -> Preparation:
    """Find the layers, split off their activations, and pair the network with its float twin.

    Raises QuantizeError for a network that is quantized already, when nothing qualifies or the data
    cannot be used.
    """
    work = real_network(model)
    count = check_records(work.graph, records)
    check_finite(records)
    _simplify(work.graph, unroll)
    listed = work.clone()
    scope = method.scope
    groups, skipped = find_groups(work.graph, config, scope)
    stored = find_stored(work.graph, config, skipped) if scope.together else []
    others = [op for one in stored for op in one.ops]
    names = [*(name for g in groups for name in g.names), *(op.name for op in others)]
    check_layers(work.graph, names, skipped, config)
    sizes = {g.name: constant_bytes(g.ops[0]) for g in groups}
    sizes |= {op.name: constant_bytes(op) for op in others}
    batch = batch_for(Interpreter(work), records)
    factors: dict[str, Array] = {}
    if scope.rescales:
        factors = even_inputs(work, groups, records, batch, method.seed, known)
    network = _network(work, [op for g in groups for op in g.ops if scope.together], records, batch)
    return Preparation(
        work,
        network,
        listed,
        {group.name: group for group in groups},
        list(_jobs(groups, count, method, factors)),
        stored,
        skipped,
        sizes,
        dict(zip(work.graph.values, network.reference.graph.values, strict=True)),
        count,
        batch,
        factors,
    )


def _simplify(graph: Graph, unroll: bool) -> None:
    """Unroll recurrent layers on demand, and compute operators that are the same in each run and
    would keep weights float.
    """
    if unroll and unroll_unidirseqlstm(graph):
        remove_dead(graph)
    if any(_is_spare(op) for op in graph.ops):
        FoldConstants(evaluation.evaluate)(graph)
        remove_dead(graph)


def _network(work: Model, layers: Sequence[Op], records: Records, batch: int) -> Network:
    """Split off the activations of layers, and pair the network with its float twin."""
    for op in layers:
        split_activation(work.graph, op)
    reference = work.clone()
    pairs = dict(zip(work.graph.ops, reference.graph.ops, strict=True))
    return Network(reference, Branches.of(pairs, layers), Front(work, records, batch))


def _is_spare(op: Op) -> bool:
    """Check whether a layer computes the same in each run, and would keep float weights for it that
    other layers share: the first step of an unrolled recurrent layer, whose state is 0.
    """
    weights = weight_constant(op) if has_weights(op) else None
    data = None if weights is None else op.operands[0]
    if weights is None or data is None or not is_fixed(data):
        return False
    return any(not is_fixed(user.op.output) for user in weights.users)


def _jobs(
    groups: Sequence[Group], count: int, method: LevelsMethod, factors: Mapping[str, Array]
) -> Iterator[Job[Choice]]:
    """Make a job of each group, the seed of each being one more."""
    for seed, group in enumerate(groups, method.seed):
        most = max(1, _ROWS // (count * len(group.ops)))
        positions = min(most, _MOST_POSITIONS) if method.scope.together else None
        units = factors.get(group.name)
        yield Job(group.name, group.ops, group.choice, Sampling(positions, seed), units)
