"""Run a compiled graph, any number of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.contents import Contents
from luciole.interpreter.crew import Crew
from luciole.interpreter.observe import Observer
from luciole.interpreter.schedule import Schedule
from luciole.interpreter.settle import Settled
from luciole.interpreter.steps import Step
from luciole.interpreter.uncopied import Uncopied
from luciole.ir import Array, GraphError, Op, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.quantization import zero_code
from luciole.ir.strings import OBJECTS, blank
from luciole.ir.value import shape_text
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.meter import Meter


class Late(Protocol):
    """Steps behind a plan's own that are planned while these run, see ``tails``."""

    @property
    def length(self) -> int:
        """How many steps of the plan these are."""

    @property
    def plan(self) -> Plan | None:
        """Plan that the steps are compiled to, None as long as the references run."""

    @property
    def steps(self) -> list[Step]:
        """The steps as they are run for the present key."""

    def run(self) -> None:
        """Run every step."""

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took."""

    def leave(self) -> None:
        """Forget results of the last run."""


class Plan(Uncopied):
    """A graph with settled input shapes, ready to run: ``compile_graph`` makes it.

    The plan works on a copy of the graph and owns every array that its steps point into. Its
    tensors are asked for by those of the graph itself.
    """

    def __init__(
        self,
        settled: Settled,
        layout: Layout,
        contents: Contents,
        steps: list[Step],
        crew: Crew | None,
        meter: Meter,
        tail: Late | None = None,
    ) -> None:
        self._own_steps = steps
        self._tail = tail
        self._settled, self._layout, self._contents = settled, layout, contents
        self._crew, self._meter = crew, meter
        self._begin: Callable[[], object] = _nothing
        self._originals = {copy: value for value, copy in settled.values.items()}
        self._arrange()

    def _arrange(self) -> None:
        """Make runs of the steps that are compiled."""
        self._schedule = self._scheduled(self._head)
        self.calls = [*self._schedule.calls]
        if self._tail is not None:
            self.calls.append(self._tail.run)
        elif self._contents.late:
            self.calls.insert(0, self._contents.forget)
        if self._begin is not _nothing:
            self.calls.insert(0, self._begin)

    def begin_with(self, begin: Callable[[], object]) -> None:
        """Set a function that every run calls before its first step."""
        self._begin = begin
        self._arrange()

    def _scheduled(self, steps: Sequence[Step]) -> Schedule:
        return Schedule(steps, self._crew, self._contents, self._meter)

    @property
    def _head(self) -> list[Step]:
        """The steps before the tail."""
        steps = self._own_steps
        return steps if self._tail is None else steps[: len(steps) - self._tail.length]

    @property
    def has_tail(self) -> bool:
        """Whether there are steps whose extents are known only when they run."""
        return self._tail is not None

    @property
    def steps(self) -> list[Step]:
        """The steps as they were run last: those whose extents are known only then may have been
        compiled meanwhile.
        """
        return self._own_steps if self._tail is None else [*self._head, *self._tail.steps]

    @property
    def simulated(self) -> Mapping[Op, str]:
        """Why operators on integers of the original graph are computed in floats."""
        return self._settled.simulated

    @property
    def arena_bytes(self) -> int:
        """Bytes of the block that holds inputs, outputs and everything between."""
        inner = self._inner
        return self._layout.size + (0 if inner is None else inner.arena_bytes)

    @property
    def _inner(self) -> Plan | None:
        return None if self._tail is None else self._tail.plan

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that operators use, folded ones included."""
        used = {v for step in self._own_steps for v in step.op.operands if v is not None}
        return sum(array.nbytes for v, array in self._settled.constants.items() if v in used)

    @property
    def taken_bytes(self) -> int:
        """Bytes of the arena and of the constants that the file does not hold as they are."""
        inner = self._inner
        own = self._layout.size + self._settled.made_bytes
        return own + (0 if inner is None else inner.taken_bytes)

    def array(self, value: Value) -> Array | None:
        """Return the contents of a tensor of the original graph; texts are read-only.

        None where it has none yet, or had to make room for a later one (``is_overwritten``).
        """
        copy = self._settled.values[value]
        array = None if copy in self._layout.overwritten else self._contents.arrays.get(copy)
        if array is not None and array.dtype == OBJECTS:
            array = array.view()
            array.flags.writeable = False  # ``give`` counts texts
        return array

    def give(self, value: Value, array: Array) -> None:
        """Copy an array of the same type and shape into a tensor of the original graph that has
        contents. Raises MemoryLimitError for texts that take too much.
        """
        self._contents.write(self._settled.values[value], array)

    def shape(self, value: Value) -> tuple[int, ...] | None:
        """Return the shape of a tensor of the original graph, None where nothing settled it yet."""
        array = self._contents.arrays.get(self._settled.values[value])
        return None if array is None else array.shape

    def is_overwritten(self, value: Value) -> bool:
        """Return whether a tensor of the original graph makes room for a later one during a run."""
        return self._settled.values[value] in self._layout.overwritten

    def reset_variables(self) -> None:
        """Set every variable tensor to its initial contents: zeros (zero points where it is
        quantized), empty texts, or what the file says. Raises GraphError where that is not as long.
        """
        for value in self._settled.graph.values:
            array = self._contents.arrays.get(value) if value.is_variable else None
            if array is not None and array.dtype == OBJECTS:
                self._contents.write(value, blank(array.shape))
            elif array is not None:
                _reset(value, array)

    def compiled_steps(self) -> list[NativeStep] | None:
        """List the steps that there is something to do for, None where some are not compiled."""
        working = [step.native for step in self.steps if not step.nothing_to_do]
        compiled = [native for native in working if native is not None]
        return compiled if len(compiled) == len(working) else None

    @property
    def call(self) -> Callable[[], object]:
        """Function that runs every step: the compiled driver itself where it does all."""
        return self.calls[0] if len(self.calls) == 1 else self.run

    def run(self) -> None:
        """Run every step."""
        for call in self.calls:
            call()

    def run_observed(self, observers: Sequence[Observer]) -> None:
        """Run the steps one at a time, and notify observers."""
        self._begin()
        self._forget()
        self._report(observers, self._settled.graph.inputs)
        for source, steps in groupby(self._own_steps, lambda step: step.source):
            for observer in observers:
                observer.before_operator(source)
            written: Sequence[Value] = ()
            for step in steps:  # several stand for a call
                self._report(observers, written)
                self._scheduled([step]).run()
                written = step.op.results
            for observer in observers:
                observer.after_operator(source)
            self._report(observers, written)

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took.

        The clock is read between native steps by compiled code, which adds some 30 ns to each.
        """
        self._begin()
        if self._tail is None:
            self._contents.forget()
            return self._schedule.run_timed()
        head = self._schedule.run_timed()
        return np.concatenate([head, self._tail.run_timed()])

    def _forget(self) -> None:
        """Leave out contents that the last run has computed and that have no place."""
        if self._tail is None:
            self._contents.forget()
        else:
            self._tail.leave()

    def _report(self, observers: Sequence[Observer], values: Sequence[Value]) -> None:
        """Notify observers of tensors, except those of a called graph."""
        known = (value for value in values if value in self._originals)
        for value in known:
            for observer in observers:
                observer.after_tensor_write(self._originals[value], self._contents.arrays[value])


def _nothing() -> None:
    """Do nothing before a run."""


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
