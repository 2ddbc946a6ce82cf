"""Run a network piece by piece over records: what was computed once is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Progress, Records, check_records, some
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.constancy import is_fixed
from luciole.ir.dtypes import array_type
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import is_affine
from luciole.ir.value import element_count, has_batch_axis
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import Range

_MOST_BYTES = 64_000_000
"""Bytes of the tensors that are kept for later at the most; beyond, operators run again."""


@dataclass
class Front:
    """A network, and how far it was run on some records: tensors that something still needs are
    kept, batch by batch as they came, those that a DEQUANTIZE gives as the integers in front of it.
    """

    model: Model
    records: Records
    batch: int
    limits: Mapping[str, Range] = field(default_factory=dict)
    """How far the numbers of inputs reach, by name: what lies beyond is cut off."""
    most: int = _MOST_BYTES
    _kept: dict[Value, list[Array]] = field(default_factory=dict)
    _done: set[Op] = field(default_factory=set)
    """Operators that need not run again: whatever still needs their results reads what is kept."""

    def of(self, model: Model) -> Front:
        """Run another network on the same records, from the beginning."""
        return Front(model, self.records, self.batch, self.limits)

    def run(
        self,
        values: Sequence[Value],
        later: Iterable[Value] = (),
        changing: Collection[Op] = (),
        progress: Progress | None = None,
        endless: Container[Value] = (),
    ) -> Iterator[tuple[range, list[Array]]]:
        """Compute chosen tensors, batch by batch: the numbers of the records, and one array per
        tensor with the records along its first axis. Only operators that are needed run; tensors
        that ``later`` ones need are kept, unless they depend on operators that are ``changing``
        until then.

        Raises QuantizeError where NaN appears, or infinity in others than ``endless`` tensors.
        """
        running, _ = _makers(values, self._kept.__contains__)
        live, done = self._next(running, later, changing)
        fresh: dict[Value, list[Array]] = {v: [] for v in live if v not in self._kept}
        part = _Part.of(self.model, running, self._kept, [*values, *fresh])
        fixed = {value for value in values if is_fixed(value)}
        for number, records in enumerate(self._batches()):
            kept = {name: self._kept[value][number] for name, value in part.kept.items()}
            arrays = part.run(self._inputs(records), kept)
            for value, array in zip(fresh, arrays[len(values) :], strict=True):
                fresh[value].append(array)
            held = list(zip(values, arrays, strict=False))
            for value, array in held:
                _check(value, array, value in endless)
            yield records, [_by_record(v, array, len(records), v in fixed) for v, array in held]
            if progress is not None:
                progress(len(records))
        self._kept, self._done = {v: {**self._kept, **fresh}[v] for v in live}, done

    def _next(
        self, running: set[Op], later: Iterable[Value], changing: Collection[Op]
    ) -> tuple[list[Value], set[Op]]:
        """Choose the tensors to keep from now on, and the operators that need not run again."""
        settled = _settled(self.model.graph, changing)
        done = self._done | {op for op in running & settled if _is_worth_it(op)}
        _, live = _makers(later, lambda v: v.producer is not None and v.producer.op in done)
        known = all(v in self._kept or (v.producer and v.producer.op in running) for v in live)
        count = check_records(self.model.graph, self.records)
        if known and count * sum(map(_record_bytes, live)) <= self.most:
            return [value for value in self.model.graph.values if value in live], done
        return list(self._kept), self._done

    def _batches(self) -> Iterator[range]:
        total = check_records(self.model.graph, self.records)
        for begin in range(0, total, self.batch):
            yield range(begin, min(begin + self.batch, total))

    def _inputs(self, records: range) -> dict[str, Array]:
        """Take the network's inputs of some records, or of the one of a graph without a batch."""
        values = {v.name: v for v in self.model.graph.inputs}
        taken = some(self.records, records.start, records.stop)
        cut = {n: a.clip(*self.limits[n]) if n in self.limits else a for n, a in taken.items()}
        return {n: a if has_batch_axis(values[n]) else a[0] for n, a in cut.items()}


@dataclass(frozen=True)
class _Part:
    """The operators that are run at once, as a network of its own."""

    interpreter: Interpreter
    kept: Mapping[str, Value]
    """Tensors that were computed before, by the names of the inputs that hold them."""
    outputs: tuple[str, ...]

    @classmethod
    def of(
        cls, model: Model, running: set[Op], kept: Iterable[Value], outputs: Iterable[Value]
    ) -> _Part:
        """Copy operators with their operands and results."""
        copy, copies = model.graph.clone()
        part = Model()
        part.add_graph(copy)
        copy.outputs = [copies[value] for value in outputs]
        begins = {copy.unique_name(f"kept {n}"): value for n, value in enumerate(kept)}
        for name, value in begins.items():
            _begin_at(copy, copies[value], name)
        for number, value in enumerate(dict.fromkeys(copy.outputs)):
            if not value.is_input:
                value.name = f"watched {number}"
        if not _has_state(copy):
            _keep_only(copy, {place for place, op in enumerate(model.graph.ops) if op in running})
        remove_dead(copy)
        copy.inputs = [v for v in copy.inputs if v.users or v.is_output]
        used = {value.name for value in copy.inputs}
        names = tuple(value.name for value in copy.outputs)
        return cls(Interpreter(part), {n: v for n, v in begins.items() if n in used}, names)

    def run(self, inputs: Mapping[str, Array], kept: Mapping[str, Array]) -> list[Array]:
        """Compute the outputs of a batch, as they are."""
        names = {value.name for value in self.interpreter.graph.inputs}
        fed = {name: array for name, array in inputs.items() if name in names}
        self.interpreter.reset_before_run()
        results = self.interpreter.run({**fed, **kept})
        return [results[name] for name in self.outputs]


def _begin_at(graph: Graph, value: Value, name: str) -> None:
    """Make a tensor an input of the graph."""
    new = graph.add_input(name, value.shape, value.dtype)
    new.quantization = value.quantization
    for op, slot in list(value.users):
        op.set_operand(slot, new)
    graph.outputs = [new if v is value else v for v in graph.outputs]


def _keep_only(graph: Graph, places: set[int]) -> None:
    """Remove the operators whose places in execution order are others."""
    for place, op in reversed(list(enumerate(graph.ops))):
        if place not in places:
            graph.remove(op)


def _has_state(graph: Graph) -> bool:
    """Check whether operators pass state on, beside their results."""
    return any(op.stateful for op in graph.ops)


def _settled(graph: Graph, changing: Collection[Op]) -> set[Op]:
    """Find the operators that depend on none that is changing; none where there is state."""
    settled: set[Op] = set()
    for op in () if _has_state(graph) else graph.ops:
        makers = {v.producer.op for v in op.operands if v is not None and v.producer}
        if op not in changing and makers <= settled:
            settled.add(op)
    return settled


def _is_worth_it(op: Op) -> bool:
    """Check whether results are worth keeping: real numbers or codes for them, on which no shape
    depends, and of more than a DEQUANTIZE, whose operand says as much.
    """
    numbers = all(v.dtype == TensorType.FLOAT32 or is_affine(v) for v in op.results)
    return numbers and not isinstance(op, Dequantize)


def _makers(values: Iterable[Value], ends: Callable[[Value], bool]) -> tuple[set[Op], set[Value]]:
    """Find the operators that tensors depend on, back to the ``ends``, and the ends that were
    reached.
    """
    waiting, makers, reached = list(values), set[Op](), set[Value]()
    while waiting:
        value = waiting.pop()
        if ends(value):
            reached.add(value)
        elif value.producer is not None and value.producer.op not in makers:
            makers.add(value.producer.op)
            waiting += [v for v in value.producer.op.operands if v is not None]
    return makers, reached


def _record_bytes(value: Value) -> int:
    """Estimate the bytes of a tensor for one record."""
    elements = element_count(tuple(n or 1 for n in value.shape[1:]))
    return elements * array_type(value.dtype).itemsize


def _check(value: Value, array: Array, is_endless: bool) -> None:
    """Raise QuantizeError for NaN, and for infinity unless the tensor is endless."""
    if not (np.isfinite(array).all() or (is_endless and not np.isnan(array).any())):
        raise QuantizeError(
            f"tensor {value.name!r} becomes NaN or infinite on the calibration data"
        )


def _by_record(value: Value, array: Array, count: int, fixed: bool) -> Array:
    """Shape a tensor of a run of ``count`` records with the records along its first axis: behind a
    TRANSPOSE they may lie along another one, and behind a RESHAPE an axis may hold several rows of
    each, which get an axis of their own. One that is ``fixed`` is the same for all records, and so
    is one, computed from shapes, whose elements cannot be parted among them.
    """
    if array.size == 0 or array.ndim == 0:
        return np.resize(array, (count, array.size))
    if fixed or array.size % count:
        return np.broadcast_to(array, (count, *array.shape))
    axis = 0 if count == 1 else _axis_of_records(value, array)
    first = np.moveaxis(array, axis, 0)
    return first if len(first) == count else first.reshape(count, -1, *first.shape[1:])


def _axis_of_records(value: Value, array: Array) -> int:
    """Find the axis that is longer where several records run at once than in the network."""
    grown = (axis for axis, n in enumerate(value.shape) if n is None or n != array.shape[axis])
    return next(grown, 0)
