"""Give a whole network uniform integers, its layers learned one after the other.

Every tensor is rounded where it is made, layers are fitted on what the rounded network in front of
them computes. At last operators can compute with the integers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Progress, Records, Track
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.weights import has_weights
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.quantization import Affine
from luciole.ir.text.common import one_line
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.recurrent import CELL, HIDDEN, inner_tensors
from luciole.lquantizer.calibration.rows import Product, Sampling
from luciole.lquantizer.calibration.watch import batch_for
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import Range
from luciole.lquantizer.formats.integers import Integers
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.methods.integers import LearnedIntegers
from luciole.lquantizer.network.branches import Aim, Branches
from luciole.lquantizer.network.fake_quant import NOTHING, TrainedGrids
from luciole.lquantizer.network.grids import Grids, choose_grids, range_of, touched, without_grid
from luciole.lquantizer.network.limits import Limits
from luciole.lquantizer.network.places import types_of
from luciole.lquantizer.network.poles import kept_from_poles
from luciole.lquantizer.network.problem import LayerProblem
from luciole.lquantizer.network.rounding import tensor_reports
from luciole.lquantizer.network.told_apart import ALL
from luciole.lquantizer.network.uneven import with_finer_norms
from luciole.lquantizer.network.walk import Job, Network
from luciole.lquantizer.report import LayerReport, TensorReport, snr_db
from luciole.lquantizer.rewrite.ends import integer_ends
from luciole.lquantizer.rewrite.integers import (
    insert_pairs,
    set_bias,
    set_weights,
    to_integers,
    weight_slot,
)
from luciole.lquantizer.rewrite.recurrent import prepare_layer, scale_of_cells, symmetric
from luciole.lquantizer.rewrite.stored_levels import read_integers

_FINE = 8
"""Bits of a weight from which fewer rows are as good."""
_LEARNED_FROM = 400
"""Records that layers are learned from at the most; ranges are of all. 1,000 gave the same."""


@dataclass(frozen=True)
class Walked:
    """Results of a walk: reports of layers, the float weights [o, n] of their codes, by the name of
    the operator, and the operators that compute with integers.
    """

    reports: dict[Op, LayerReport]
    latents: dict[str, Array]
    integers: set[Op]
    lost: dict[Op, str] = field(default_factory=dict)
    """Operators that could compute with integers, but would lose too much, and the reasons."""
    levels: dict[Op, StoredLevels] = field(default_factory=dict)
    """The levels of layers' integers, of those that have few."""


def walk(
    work: Model,
    records: Records | None,
    schemes: Mapping[Op, Scheme],
    options: UniformOptions,
    track: Track,
    known: Known,
    trained: TrainedGrids = NOTHING,
) -> Walked:
    """Round the tensors around the operators that have ``schemes``, and learn the layers among
    them; the network goes on computing with floats. Ranges and integers are added to the
    ``known`` ones; ``trained`` grids are not learned.

    Raises QuantizeError for data that cannot be used.
    """
    names = {op: op.name for op in work.graph.ops}
    learning = _Learning.begin(work, records, schemes, options, track, known, trained)
    aims = learning.aims(track("float network", learning.count))
    for layer in recurrent(work.graph, learning.schemes):
        size = constant_bytes(layer)
        learning.walked.reports[layer] = LayerReport(names[layer], 8, 8, bytes_before=size)
    learning.learn(options, aims, track("learning layers", len(learning.jobs)))
    return learning.walked


@dataclass
class Known:
    """Known facts of a network: the ranges of its tensors' integers, the integers of each layer, by
    its name and the bits of a weight, reports of the last rounding of tensors, and the number of
    records that can run at once.
    """

    limits: Limits
    integers: dict[tuple[str, int], Integers] = field(default_factory=dict)
    tensors: list[TensorReport] = field(default_factory=list)
    batch: int | None = None
    cut: dict[str, Range] = field(default_factory=dict)
    """Ends of tensors that reach no further than their readers tell numbers apart, by name."""
    asked: frozenset[str] = frozenset()
    """Operators whose formats somebody chose by name."""

    def obeying(self, asked: frozenset[str]) -> Known:
        """Note the operators whose formats somebody chose by name, and return itself."""
        self.asked = asked
        return self

    def why_float(self, op: Op) -> str | None:
        """Return the reason why integers would ruin an operator's results, as ``kept_float`` found
        before; None where they would not.
        """
        floats = self.limits.floats
        return next((floats[v.name] for v in op.results if v.name in floats), None)

    def batch_of(self, model: Model, records: Records) -> int:
        """Find how many records a float network of these layers runs at once."""
        if self.batch is None:
            self.batch = batch_for(Interpreter(model), records)
        return self.batch

    def round(
        self,
        graph: Graph,
        schemes: Mapping[Op, Scheme],
        ends: Mapping[Value, TensorType],
        trained: TrainedGrids = NOTHING,
    ) -> None:
        """Round every tensor that operators on integers touch, and ``ends`` that are integers.
        Raises QuantizeError for an end of fewer or more bits than the operator beside it has.
        """
        types = with_finer_norms(graph, types_of(schemes), ends, self.asked)
        statistics = self.limits.seen_in(graph)
        grids = choose_grids(graph, types, self._reach(self.limits.choose), ends, trained.tensors)
        for value in ends:
            _check_end(value, grids.tensors.get(value), ends[value])
        self.tensors = tensor_reports(grids, statistics, self.limits.rule_name)
        self.cut = {value.name: reach for value, reach in grids.cut.items()}
        for value in graph.inputs:
            affine = grids.tensors.get(value)
            if affine is not None and self.limits.is_judged_as_read(value, affine.dtype):
                self.cut[value.name] = range_of(affine)
        for op in recurrent(graph, schemes):
            self._prepare(graph, op, grids.tensors[op.output])
        insert_pairs(graph, grids.tensors, grids.operands, types, ends)

    def _prepare(self, graph: Graph, op: LSTMLayer, result: Affine) -> None:
        """Enter the scales of a recurrent layer's inner tensors."""
        inner = inner_tensors(op)
        cells = scale_of_cells(*self.limits.choose(inner.pop(CELL), TensorType.INT16))
        types = {HIDDEN: TensorType.INT8}
        between = {HIDDEN: result}
        for name, value in inner.items():
            dtype = types.get(name, TensorType.INT16)
            low, high = self.limits.choose(value, dtype)
            between[name] = symmetric(max(-low, high), dtype)
        prepare_layer(graph, op, cells, between)

    def kept_float(
        self,
        graph: Graph,
        types: Mapping[Op, TensorType],
        ends: Mapping[Value, TensorType],
        trained: TrainedGrids,
    ) -> dict[Op, str]:
        """Find the operators that integers would ruin, with the reason, and remember them."""

        def grids(integers: Mapping[Op, TensorType]) -> Grids:
            return choose_grids(graph, integers, self._reach(self.limits.of), ends, trained.tensors)

        kept = kept_from_poles(graph, types, self.limits.seen_in(graph), grids)
        named = [(value.name, reason) for op, reason in kept.items() for value in op.results]
        self.limits.floats |= dict(named)
        return kept

    def _reach(
        self, limits: Callable[[Value, TensorType], Range]
    ) -> Callable[[Value, TensorType], Range]:
        """Return limits that are empty for tensors without statistics, which share a trained
        grid.
        """
        return lambda value, dtype: limits(value, dtype) if self.limits.knows(value) else (0.0, 0.0)


def recurrent(graph: Graph, chosen: Container[Op]) -> list[LSTMLayer]:
    """List the chosen recurrent layers of a graph."""
    return [op for op in graph.ops if isinstance(op, LSTMLayer) and op in chosen]


def _check_end(value: Value, affine: Affine | None, dtype: TensorType) -> None:
    if affine is not None and affine.dtype != dtype:
        raise QuantizeError(
            f"{one_line(value.name)!r} is {affine.dtype.name} inside: let it be float32 in the file"
        )


def assemble(
    work: Model,
    schemes: Mapping[Op, Scheme],
    weights: Mapping[Op, Scheme],
    known: Known,
) -> None:
    """Round the tensors around operators that have ``schemes``, and the weights of layers that have
    some, to the known ranges and integers: nothing is learned.
    """
    graph, names, levels = work.graph, {op: op.name for op in weights}, {}
    known.round(graph, schemes, {})
    for op, types in weights.items():
        learned = known.integers[names[op], types.weight_bits]
        if learned.levels is not None:
            levels[op] = learned.levels
        set_weights(graph, op, learned.codes, learned.scales, types.weights)
        set_bias(graph, op, learned.bias)
    to_integers(graph, schemes)
    read_integers(graph, levels)


@dataclass
class _Learning:
    """A half-finished network, the jobs that are left, and the results."""

    work: Model
    network: Network
    jobs: list[Job[Scheme]]
    schemes: Mapping[Op, Scheme]
    names: Mapping[Op, str]
    known: Known
    walked: Walked

    @classmethod
    def begin(
        cls,
        work: Model,
        records: Records | None,
        schemes: Mapping[Op, Scheme],
        options: UniformOptions,
        track: Track,
        known: Known,
        trained: TrainedGrids,
    ) -> _Learning:
        """Watch the float network, and round every tensor that operators on integers touch."""
        graph, names = work.graph, {op: op.name for op in work.graph.ops}
        reference = work.clone()
        twins = dict(zip(graph.ops, reference.graph.ops, strict=True))
        batch = 1 if records is None else known.batch_of(reference, records)
        lost = {op: why for op in schemes if (why := known.why_float(op)) is not None}
        schemes = {op: types for op, types in schemes.items() if op not in lost}
        ends = _ends(graph, options)
        values = [value for value, _ in touched(graph, types_of(schemes), ends)]
        if records is None and trained.tensors:  # others share with what is given
            values = list(without_grid(graph, types_of(schemes), trained.tensors))
        progress = track("ranges", _count(records))
        known.limits.watch(work, values, records, batch, progress, recurrent(graph, schemes))
        lost |= known.kept_float(graph, types_of(schemes), ends, trained)
        schemes = {op: types for op, types in schemes.items() if op not in lost}
        known.round(graph, schemes, ends, trained)
        teachers = _learned_from(records)
        layers = [op for op in graph.ops if op in schemes and has_weights(op)]
        branches = _branches(reference.graph, twins, layers)
        front = None if teachers is None else Front(work, teachers, batch, known.cut)
        network = Network(reference, branches, front)
        count = max(1, _count(teachers))
        jobs = [
            _job(ops, names[ops[0]], schemes[ops[0]], count, options, trained)
            for ops in _together(layers, schemes)
        ]
        return cls(work, network, jobs, schemes, names, known, Walked({}, {}, set(schemes), lost))

    @property
    def count(self) -> int:
        """Records that layers are learned from."""
        return _count(None if self.network.front is None else self.network.front.records)

    def aims(self, progress: Progress) -> Mapping[Op, Aim]:
        """Take rows of layers' targets, of branches as far as integers reach by intent: no layer
        makes up for numbers that are cut off.
        """
        return self.network.aims(self.jobs, progress, self._cut)

    def _cut(self, op: Op, aim: Aim) -> Aim:
        branch = self.network.branches.in_float(op)
        if branch is None or aim.other is None:
            return aim
        return Aim(aim.own, aim.other.clip(*self.known.cut.get(branch.name, ALL)))

    def learn(self, options: UniformOptions, aims: Mapping[Op, Aim], step: Progress) -> None:
        """Learn the layers, and give them their integers."""
        self.network.walk(self.jobs, aims, LearnedIntegers(options), self._write, step)

    def _write(self, job: Job[Scheme], problem: LayerProblem, learned: Integers) -> None:
        """Give a job's layers their integers, one constant for all of them."""
        types, graph, first = job.format, self.work.graph, job.ops[0]
        before = constant_bytes(first)
        set_weights(graph, first, learned.codes, learned.scales, types.weights)
        slot, shared, _ = weight_slot(first)
        for op in job.ops:
            report = LayerReport(self.names[op], types.activation_bits, types.weight_bits)
            report.bytes_before = before
            _judge(report, problem, learned)
            self.walked.reports[op] = report
            self.walked.latents[op.name] = problem.weights
            self.known.integers[self.names[op], types.weight_bits] = learned
            if learned.levels is not None:
                self.walked.levels[op] = learned.levels
            op.set_operand(slot, shared)
            set_bias(graph, op, learned.bias)


def _together(layers: Iterable[Op], schemes: Mapping[Op, Scheme]) -> Iterable[list[Op]]:
    """List layers that share weights, bias and scheme, as steps of an unrolled LSTM do."""
    groups: dict[tuple[object, ...], list[Op]] = {}
    for op in layers:
        bias = op.given_operands().get(op.quantized_as.bias or "")
        groups.setdefault((type(op), weight_slot(op)[1], bias, schemes[op]), []).append(op)
    return groups.values()


def _job(
    ops: Sequence[Op],
    name: str,
    types: Scheme,
    count: int,
    options: UniformOptions,
    trained: TrainedGrids,
) -> Job[Scheme]:
    """Make the job of layers that share their weights, learned from rows of so many records."""
    sampling = Sampling.of(count, options.seed, ops[0], fine=types.weight_bits >= _FINE)
    _, weights, axis = weight_slot(ops[0])
    affine = trained.weights.get(weights)
    if affine is not None and affine.scale.size > 1 and affine.axis != axis:
        affine = None  # kernels have scales of outputs
    return Job(name, ops, types, sampling, trained=affine)


def _branches(reference: Graph, twins: Mapping[Op, Op], layers: Iterable[Op]) -> Branches:
    """Split off the activations of a float network's layers, and find their branches."""
    products = [op for op in layers if isinstance(op, Product)]
    for op in products:
        split_activation(reference, twins[op])
    return Branches.of(twins, products)


def _count(records: Records | None) -> int:
    return 0 if records is None else len(next(iter(records.values())))


def _learned_from(records: Records | None) -> Records | None:
    """Take the records that layers are learned from."""
    apart = -(-_count(records) // _LEARNED_FROM)
    return None if records is None else {name: array[::apart] for name, array in records.items()}


def _judge(report: LayerReport, problem: LayerProblem, learned: Integers) -> None:
    """Enter how close the layer's output is, before it is rounded itself."""
    part = problem.part()
    if part is None:
        return
    y = part.z @ problem.by_group(learned.values())
    report.mse = part.error(y, learned.bias.reshape(*part.z.shape[:-2], -1))
    report.snr_db = snr_db(part.signal, report.mse)


def _ends(graph: Graph, options: UniformOptions) -> dict[Value, TensorType]:
    """Return the element types of inputs and outputs that are to be integers, where no operator
    has one.
    """
    dtype = options.types.activations
    ends = integer_ends(graph, options.input_type, options.output_type)
    return {} if dtype is None else dict.fromkeys(ends, dtype)
