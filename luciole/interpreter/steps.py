"""Build the steps of a plan, one for each operator, and run uncompiled ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.contents import Contents
from luciole.interpreter.crew import Crew, Quicker
from luciole.interpreter.settle import Settled
from luciole.ir import Array, LucioleError, Op, TensorType, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.dtypes import NUMPY
from luciole.ir.infer import infer_op, shapes_given
from luciole.ir.ops.control_flow import Calling
from luciole.ir.strings import OBJECTS
from luciole.ir.value import compatible, shape_text
from luciole.kernels import jit
from luciole.kernels.core import building, evaluation
from luciole.kernels.core.allocation import side_by_side
from luciole.kernels.core.contract import Context, NativeStep, Reference
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.limits import afford
from luciole.kernels.core.meter import Meter
from luciole.kernels.core.reasons import Declined
from luciole.kernels.core.registry import find_stateful_native


@dataclass
class Step:
    """One operator, ready to run: ``native`` where a kernel was built, else the reference.

    ``context`` is that of an operator with state that can be compiled once it ran.
    """

    op: Op
    source: Op
    reference: Reference
    native: NativeStep | None = None
    nothing_to_do: bool = False
    """Whether the result stands in the operand's place already."""
    reason: str = ""
    """Why no kernel was built, where the reference runs."""
    context: Context | None = None


class Run:
    """Native steps that follow each other; one that stands alone is the only one. ``table`` has a
    row (kernel, record) for each, ``call`` runs them, as long as this object lives.
    """

    def __init__(self, steps: Sequence[NativeStep], crew: Crew | None = None) -> None:
        self._steps = steps
        threads = 1 if crew is None else crew.threads
        self._stages = [step.split(threads) if step.split else () for step in steps]
        rows = [(step.address, step.record.ctypes.data) for step in steps]
        self.table = np.array(rows, np.int64)
        self.call: Callable[[], object] = jit.caller(self.table)
        if crew is not None and any(self._stages):
            self.call = Quicker(self.call, crew.runner(self._shared_table(threads)))
        self._check, self._is_paused = steps[0].check, steps[0].is_paused
        if steps[0].stands_alone:
            self.call = partial(self._watched, self.call)

    def _watched(self, call: Callable[[], object]) -> None:
        """Call until the step has ended: Python handles signals meanwhile."""
        call()
        while self._is_paused is not None and self._is_paused():
            call()
        if self._check is not None:
            self._check()

    def run_timed(self) -> NDArray[np.int64]:
        """Run the steps and return the nanoseconds that each took."""
        times = np.zeros(len(self.table), np.int64)

        def call() -> None:
            times[:] += jit.run_timed(self.table)

        self._watched(call)
        return times

    def _shared_table(self, threads: int) -> NDArray[np.int64]:
        """Lay the table out as ``luciole.kernels.jit.threads`` has it: all meet before and after
        each stage of a shared step.
        """
        rows: list[list[int]] = []
        for (kernel, record), stages in zip(self.table.tolist(), self._stages, strict=True):
            if rows and stages:
                rows[-1][0] = 1
            for stage in stages:
                calls = [number for part in stage for number in (kernel, part.ctypes.data)]
                rows.append([1, *calls])
            if not stages:
                rows.append([0, kernel, record])
        table = np.zeros((len(rows), 1 + 2 * threads), np.int64)
        for place, row in enumerate(rows):
            table[place, : len(row)] = row
        return table


R = TypeVar("R")

NOT_ASKED = Declined("it was asked that nothing is compiled")
OPEN = Declined("what a graph that it calls returns has another type or shape")

BuildCall = Callable[[Calling, Mapping[Value, Array]], NativeStep | Declined]
"""Compile an operator that calls graphs, whose tensors have these places, where that can be
done.
"""


def build(
    settled: Settled,
    layout: Layout,
    contents: Contents,
    find: Callable[[Op], Reference],
    call: BuildCall,
    compiled: bool = True,
) -> list[Step]:
    """Build a step for each operator that is left: compiled where that is asked for, all its
    tensors have places and there is a kernel for them, or ``call`` makes one, else what ``find``
    gives.

    Raises ShapeError and ExecutionError as ``building.build_native`` does.
    """
    steps = [Step(op, settled.sources[op], find(op)) for op in settled.ops]
    with np.errstate(all="ignore"), side_by_side():
        for step in steps:
            if compiled and find_stateful_native(step.op) is not None:
                step.context = _context(step.op, contents)
                continue
            shares = not layout.shared.keys().isdisjoint(step.op.results)
            step.nothing_to_do = shares and contents.placed.issuperset(step.op.results)
            if not step.nothing_to_do:
                built = _native(step.op, contents, call) if compiled else NOT_ASKED
                step.native = built if isinstance(built, NativeStep) else None
                step.reason = built.reason if isinstance(built, Declined) else ""
    return steps


def _native(op: Op, contents: Contents, call: BuildCall) -> NativeStep | Declined:
    context = _context(op, contents)
    if context is None:
        unplaced = (v for v in (*op.operands, *op.results) if v is not None)
        value = next(v for v in unplaced if v not in contents.placed)
        if value.dtype == TensorType.STRING:
            return Declined(f"{value.name!r} is of texts")
        return Declined(f"the extents of {value.name!r} are known only when it runs")
    if isinstance(op, Calling):
        made = call(op, contents.arrays)
    else:
        made = building.build_native(op, context)
    return made if isinstance(made, Declined) else _named(made, op)


def _named(step: NativeStep, op: Op) -> NativeStep:
    """Name the operator in errors of a step that may fail."""
    if not step.stands_alone:
        return step
    return replace(step, check=_naming(step.check, op), is_paused=_naming(step.is_paused, op))


def _naming(inner: Callable[[], R] | None, op: Op) -> Callable[[], R] | None:
    if inner is None:
        return None

    def call() -> R:
        try:
            return inner()
        except LucioleError as error:
            raise type(error)(f"{op}: {error}") from None

    return call


def _context(op: Op, contents: Contents) -> Context | None:
    """Return the places of an operator's tensors, None where not all have one."""
    present, arrays = {v for v in op.operands if v is not None}, contents.arrays
    if not contents.placed.issuperset(present.union(op.results)):
        return None
    operands = tuple(None if v is None else arrays[v] for v in op.operands)
    return Context(operands, tuple(arrays[v] for v in op.results))


def grouped(steps: Sequence[Step], crew: Crew | None) -> list[Run | Step]:
    """Join neighbours that are compiled into one run, where they do not stand alone; steps with
    nothing to do are left out.
    """
    schedule: list[Run | Step] = []
    working = (step for step in steps if not step.nothing_to_do)
    for joined, group in groupby(working, _joins):
        members = list(group)
        if joined:
            schedule.append(Run([s.native for s in members if s.native is not None], crew))
        else:
            schedule += [s if s.native is None else Run([s.native], crew) for s in members]
    return schedule


def _joins(step: Step) -> bool:
    return step.native is not None and not step.native.stands_alone


def run_reference(step: Step, contents: Contents, meter: Meter) -> None:
    """Compute a step's results by its reference.

    Raises ExecutionError for another number of results, LucioleError for others than declared, and
    what the operator's shape rule and its kernel raise.
    """
    op, arrays = step.op, contents.arrays
    operands = [None if v is None else arrays[v] for v in op.operands]
    with meter:
        _check_now(op, contents)
        results = evaluation.call(step.reference, op, operands)
    if len(results) != len(op.results):
        raise ExecutionError(
            f"{op}: {len(results)} results were computed, it has {len(op.results)}"
        )
    for number, (value, array) in enumerate(zip(op.results, results, strict=True)):
        _check_result(op, number, array)
        contents.write(value, array)


def _check_now(op: Op, contents: Contents) -> None:
    """Apply the shape rule where shapes of operands are known only now. Raises ShapeError when they
    do not fit, ExecutionError when a result takes more bytes than are allowed.
    """
    late = [v for v in op.operands if v is not None and v not in contents.placed]
    if not late:
        return
    shapes = {v: contents.arrays[v].shape for v in late}
    with shapes_given(shapes | {v: v.shape for v in op.results}):  # the next run has others
        infer_op(op, declared=False)
        for result in op.results:
            if None not in result.shape:
                afford(result.dtype, result.dims)


def _check_result(op: Op, number: int, array: Array) -> None:
    """Raise LucioleError unless an array has the type and shape that a result is declared with."""
    value = op.results[number]
    dtype = OBJECTS if value.dtype == TensorType.STRING else NUMPY.get(value.dtype)
    if dtype is None or array.dtype != dtype or not compatible(value.shape, array.shape):
        raise LucioleError(
            f"{op}: result {value.name!r} is {array.dtype} {shape_text(array.shape)}, "
            f"expected {value.dtype.name} {shape_text(value.shape)}"
        )
