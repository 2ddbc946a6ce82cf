"""From a graph to steps: shapes settled, constants folded, an implementation chosen for every
operator.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT, Caller, check_result
from luciole.interpreter.crew import Crew
from luciole.interpreter.memory import MemoryLimitError, graph_layout, take
from luciole.interpreter.observe import Observer
from luciole.interpreter.uncopied import Uncopied
from luciole.ir import Array, Buffer, Graph, GraphError, Op, UnsupportedError, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.calls import reachable, remembered
from luciole.ir.dtypes import array_bytes, pack
from luciole.ir.infer import infer_op, shapes_given
from luciole.ir.passes.fold_constants import folded
from luciole.ir.quantization import zero_code
from luciole.ir.sparsity import dense
from luciole.ir.value import element_count, shape_text
from luciole.kernels import jit
from luciole.kernels.core import allocation, registry
from luciole.kernels.core.limits import afford
from luciole.kernels.core.registry import Context, ExecutionError, NativeStep, Reference

DEFAULT_MEMORY_LIMIT = 4 << 30
"""Bytes of tensors that a model may ask for unless the caller raises it."""


@dataclass
class Step:
    """One operator, ready to run: ``native`` where a kernel was built, else the reference."""

    op: Op
    source: Op
    reference: Reference
    native: NativeStep | None = None
    nothing_to_do: bool = False
    """Whether the result stands in the operand's place already."""


class Run:
    """Native steps that follow each other. ``table`` has a row (kernel, record) for each, ``call``
    runs them, as long as this object lives.
    """

    def __init__(self, steps: Sequence[NativeStep], crew: Crew | None = None) -> None:
        self._steps = steps
        threads = 1 if crew is None else crew.threads
        self._parts = [step.split(threads) if step.split else () for step in steps]
        rows = [(step.address, step.record.ctypes.data) for step in steps]
        self.table = np.array(rows, np.int64)
        self.call: Callable[[], object] = jit.caller(self.table)
        if crew is not None and any(self._parts):
            self.call = crew.runner(self._shared_table(threads))

    def _shared_table(self, threads: int) -> NDArray[np.int64]:
        """As ``luciole.kernels.jit.threads`` has it: all meet before and after a shared step."""
        table = np.zeros((len(self.table), 1 + 2 * threads), np.int64)
        table[:, 1:3] = self.table
        for row, (kernel, parts) in enumerate(zip(self.table[:, 0], self._parts, strict=True)):
            for thread, record in enumerate(parts):
                table[row, 1 + 2 * thread : 3 + 2 * thread] = kernel, record.ctypes.data
            table[max(row - 1, 0) : row + 1, 0] |= bool(parts)
        return table


class Plan(Uncopied):
    """A graph with settled input shapes, ready to run any number of times.

    The plan works on a copy of the graph and owns every array that its steps point into. Tensors
    whose lifetimes do not meet share memory; with ``keep`` none do, so that all can be read after a
    run. Threads of a ``crew`` share the steps that can be shared. ``caller`` runs the graphs that
    operators call and keeps variables; plans that share it share them. Raises UnsupportedError and
    MemoryLimitError, and GraphError for graphs that call themselves.
    """

    def __init__(
        self,
        graph: Graph,
        shapes: Mapping[Value, tuple[int, ...]],
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        keep: bool = False,
        crew: Crew | None = None,
        caller: Caller | None = None,
    ) -> None:
        _refuse_unsupported([op for called in reachable(graph) for op in called.ops])
        self._crew = crew
        self._caller = Caller(DEFAULT_LOOP_LIMIT, memory_limit) if caller is None else caller
        self._meter = self._caller.meter
        self._memory_limit = memory_limit
        with self._meter:
            self._make(graph, shapes, keep)

    def _make(self, graph: Graph, shapes: Mapping[Value, tuple[int, ...]], keep: bool) -> None:
        self.graph, values = graph.clone()
        self.values = values
        self._sources = dict(zip(self.graph.ops, graph.ops, strict=True))
        self._originals = {copy: value for value, copy in values.items()}
        for value, shape in shapes.items():
            values[value].shape = shape
        self._made_bytes = 0
        self._constants: dict[Value, Array] = {}
        for value in self.graph.values:
            self._spell_out(value)
            self._hold(value)
        with remembered():
            remaining = self._settle()
        layout = self._place(remaining, keep)
        with np.errstate(all="ignore"):
            self.steps = [
                self._step(op, any(v in layout.shared for v in op.results)) for op in remaining
            ]
        self._schedule = self._grouped(self.steps)
        self._calls = [self._call(group) for group in self._schedule]
        self._late = {v for op in remaining for v in op.results} - self._placed
        if self._late:
            self._calls.insert(0, partial(_forget, self._contents, self._late))

    def _place(self, remaining: Sequence[Op], keep: bool) -> Layout:
        """Take memory for what operators read and write."""
        layout = graph_layout(self.graph, remaining, self._memory_limit - self._made_bytes, keep)
        self.arena_bytes = layout.size
        self._contents: dict[Value, Array] = self._constants | take(layout)
        _refuse_without_contents(remaining, self._contents)
        self._placed = set(self._contents)  # of the others, shapes are known only when they ran
        self._overwritten = layout.overwritten
        return layout

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that operators use, folded ones included."""
        used = {v for step in self.steps for v in step.op.operands if v is not None}
        return sum(array.nbytes for v, array in self._constants.items() if v in used)

    @property
    def taken_bytes(self) -> int:
        """Bytes of the arena and of the constants that the file does not hold as they are."""
        return self.arena_bytes + self._made_bytes

    def _spell_out(self, value: Value) -> None:
        """Give a sparse constant all its elements: shape rules then check what kernels read.

        Raises MemoryLimitError where that grows beyond the limit.
        """
        if value.sparsity is None or not value.is_constant:
            return
        size = array_bytes(value.dtype, element_count(value.dims)) or 0
        if not self._may_make(size):
            raise MemoryLimitError(
                f"sparse tensor {value.name!r} {shape_text(value.shape)} takes {size} bytes with "
                f"all its elements, {self._memory_limit - self._made_bytes} are allowed"
            )
        value.buffer, value.sparsity = Buffer(pack(dense(value), value.dtype)), None
        self._made_bytes += size

    def _hold(self, value: Value) -> None:
        """Keep a constant's contents: in C order, as compiled kernels walk them."""
        data = value.data
        if data is not None:
            self._constants[value] = allocation.chosen().given(data)

    def _may_make(self, size: int) -> bool:
        """Whether there is memory for a constant before anyone asked for it."""
        return self._made_bytes + size <= self._memory_limit

    def _settle(self) -> list[Op]:
        """Infer shapes in order and compute what is constant; returns the operators that are left
        to run.
        """
        remaining = []
        for op in self.graph.ops:
            _refuse_given(op)
            infer_op(op, declared=False)
            for value, dtype in zip(op.results, op.result_dtypes(), strict=True):
                value.dtype = dtype  # what kernels write, whatever the file says
            modest = self._may_make(_result_bytes(op))
            results = folded(op, registry.evaluate) if modest else None
            if results is None:
                remaining.append(op)
                continue
            for value, array in zip(op.results, results, strict=True):
                value.producer = None
                value.set_data(array)
                self._hold(value)
                self._made_bytes += array.nbytes
        return remaining

    def _step(self, op: Op, shared: bool) -> Step:
        in_place = all(value in self._contents for value in op.results)
        step = Step(op, self._sources[op], self._reference(op))
        if shared and in_place:
            step.nothing_to_do = True
            return step
        known = all(value is None or value in self._contents for value in op.operands)
        if in_place and known:
            operands = tuple(None if v is None else self._contents[v] for v in op.operands)
            results = tuple(self._contents[v] for v in op.results)
            step.native = registry.build_native(op, Context(operands, results))
        return step

    def _reference(self, op: Op) -> Reference:
        kernel = registry.find_stateful(op)
        if kernel is None:
            return registry.find_reference(op)
        plan = weakref.proxy(self)
        return self._caller.bound(kernel, lambda *call: plan._plan_of(*call))

    def _plan_of(self, graph: Graph, shapes: Sequence[tuple[int, ...]]) -> Plan:
        """The plan of a graph that an operator calls, within what is left of the memory."""
        if len(shapes) != len(graph.inputs):
            raise ExecutionError(
                f"graph {graph.name!r} takes {len(graph.inputs)} arguments, not {len(shapes)}"
            )
        left = self._memory_limit - self.taken_bytes - self._caller.taken_bytes
        given = dict(zip(graph.inputs, shapes, strict=True))
        return Plan(graph, given, left, crew=self._crew, caller=self._caller)

    def array(self, value: Value) -> Array | None:
        """The contents of a tensor of the original graph.

        None where it has none yet, or had to make room for a later one (``is_overwritten``).
        """
        copy = self.values[value]
        return None if copy in self._overwritten else self._contents.get(copy)

    def shape(self, value: Value) -> tuple[int, ...] | None:
        """The shape of a tensor of the original graph, None where nothing settled it yet."""
        array = self._contents.get(self.values[value])
        return None if array is None else array.shape

    def is_overwritten(self, value: Value) -> bool:
        """Whether a tensor of the original graph makes room for a later one during a run."""
        return self.values[value] in self._overwritten

    def reset_variables(self) -> None:
        """Set every variable tensor to its initial contents: zeros (zero points where it is
        quantized), or what the file says. Raises GraphError where that is not as long.
        """
        for value in self.graph.values:
            if value.is_variable and value in self._contents:
                _reset(value, self._contents[value])

    def run(self) -> None:
        """Run every step."""
        for call in self._calls:
            call()

    def run_observed(self, observers: Sequence[Observer]) -> None:
        """Run the same steps one at a time, and tell observers."""
        _forget(self._contents, self._late)
        for value in self.graph.inputs:
            self._report(observers, value)
        for step in self.steps:
            for observer in observers:
                observer.before_operator(step.source)
            for group in self._grouped([step]):
                self._call(group)()
            for observer in observers:
                observer.after_operator(step.source)
            for value in step.op.results:
                self._report(observers, value)

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took.

        The clock is read between native steps by compiled code, which adds some 30 ns to each.
        """
        times: list[NDArray[np.int64]] = []
        _forget(self._contents, self._late)
        for group in self._schedule:
            if isinstance(group, Run):
                times.append(jit.run_timed(group.table))
            else:
                begin = time.perf_counter_ns()
                self._run_reference(group)
                times.append(np.array([time.perf_counter_ns() - begin], np.int64))
        found = np.zeros(len(self.steps), np.int64)
        found[[not step.nothing_to_do for step in self.steps]] = np.concatenate([*times, []])
        return found

    def _report(self, observers: Sequence[Observer], value: Value) -> None:
        for observer in observers:
            observer.after_tensor_write(self._originals[value], self._contents[value])

    def _run_reference(self, step: Step) -> None:
        operands = [None if v is None else self._contents[v] for v in step.op.operands]
        with self._meter:
            self._check_now(step.op)
            results = registry.call(step.reference, step.op, operands)
        if len(results) != len(step.op.results):
            raise ExecutionError(
                f"{step.op}: {len(results)} results were computed, it has {len(step.op.results)}"
            )
        for number, (value, array) in enumerate(zip(step.op.results, results, strict=True)):
            check_result(step.op, number, array)
            if value in self._placed:
                self._contents[value][...] = array
            else:
                self._contents[value] = array

    def _check_now(self, op: Op) -> None:
        """Let the shape rule speak where shapes of operands are known only now. Raises ShapeError
        when they do not fit, ExecutionError when a result takes more bytes than are allowed.
        """
        late = [v for v in op.operands if v is not None and v not in self._placed]
        if not late:
            return
        shapes = {v: self._contents[v].shape for v in late}
        with shapes_given(shapes | {v: v.shape for v in op.results}):  # the next run has others
            infer_op(op, declared=False)
            for result in op.results:
                if None not in result.shape:
                    afford(result.dtype, result.dims)

    def _call(self, group: Run | Step) -> Callable[[], object]:
        if isinstance(group, Run):
            return group.call
        plan = weakref.proxy(self)  # in a cycle its memory would wait for Python to look for cycles
        return lambda: plan._run_reference(group)

    def _grouped(self, steps: Sequence[Step]) -> list[Run | Step]:
        """Steps in order, neighbours that are native joined into one run."""
        schedule: list[Run | Step] = []
        working = (step for step in steps if not step.nothing_to_do)
        for native, group in groupby(working, lambda step: step.native is not None):
            members = list(group)
            together = [s.native for s in members if s.native is not None]
            schedule += [Run(together, self._crew)] if native else members
        return schedule


def _forget(contents: dict[Value, Array], values: Iterable[Value]) -> None:
    """Leave out what the last run has computed: there may be no room for it twice."""
    for value in values:
        contents.pop(value, None)


def _result_bytes(op: Op) -> int:
    """Bytes of an operator's results, with 1 for every extent that is not known."""
    return sum(array_bytes(v.dtype, element_count(v.dims)) or 0 for v in op.results)


def _refuse_given(op: Op) -> None:
    """Raise GraphError for a result whose place and extents somebody else gives."""
    for value in op.results:
        if value.is_input or value.is_variable:
            what = "an input" if value.is_input else "a variable"
            raise GraphError(f"{op} computes {value.name!r}, which is {what} and no result")


def _reset(value: Value, array: Array) -> None:
    raw = value.buffer.data if value.buffer is not None else None
    if raw is None or not len(raw):
        array[...] = zero_code(value)
        return
    if len(raw) != array.nbytes:
        raise GraphError(
            f"variable {value.name!r} begins with {len(raw)} bytes, "
            f"{shape_text(array.shape)} of {array.dtype} takes {array.nbytes}"
        )
    array.reshape(-1).view(np.uint8)[:] = raw


def _refuse_without_contents(ops: Sequence[Op], contents: Mapping[Value, Array]) -> None:
    """Raise UnsupportedError for an operand that has no array form and that nothing computes."""
    for op in ops:
        for value in op.operands:
            if value is not None and value.producer is None and value not in contents:
                raise UnsupportedError(
                    f"cannot run {op}: operand {value.name!r} is {value.dtype.name}"
                )


def _refuse_unsupported(ops: Sequence[Op]) -> None:
    """Raise one UnsupportedError that lists everything that has no kernel."""
    reasons: dict[str, list[str]] = {}
    for op in ops:
        try:
            if registry.find_stateful(op) is None:
                registry.find_reference(op)
        except UnsupportedError as error:
            reasons.setdefault(op.kind, []).append(str(error))
    if reasons:
        kinds = ", ".join(f"{kind} ({len(why)}x)" for kind, why in reasons.items())
        first = next(iter(reasons.values()))[0]
        raise UnsupportedError(f"cannot run {kinds}: {first}", list(reasons))
