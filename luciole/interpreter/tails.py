"""Compile operators whose extents are known only while a model runs, once they are known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.contents import Contents
from luciole.interpreter.crew import Crew
from luciole.interpreter.plan import Plan
from luciole.interpreter.schedule import Schedule
from luciole.interpreter.steps import Step
from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.ops.control_flow import CallOnce
from luciole.kernels.core.meter import Meter
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import find_native, find_stateful

MOST_DECIDING = 64
"""Elements of an operand by whose contents extents are told apart."""

DEEPEST = 8
"""Tails of tails: another one begins where extents depend on what was computed just before."""

PlanTail = Callable[[Graph, Mapping[Value, Array]], Plan]
"""Plan a graph of which some tensors have places already: these arrays."""


def begin_of_tail(steps: Sequence[Step], contents: Contents) -> int | None:
    """Find the first step some extents of which are known only when it runs. None where there is
    none, where nothing behind it could be compiled then, and where an operator behind it has state,
    texts or scales beside its weights.
    """
    late = (n for n, step in enumerate(steps) if _is_late(step, contents))
    begin = next(late, None)
    if begin is None:
        return None
    tail = [step.op for step in steps[begin:]]
    waiting = [s.op for s in steps[begin + (not _deciding(tail[0])) :] if _is_late(s, contents)]
    if not any(map(find_native, waiting)) or not all(map(_can_move, tail)):
        return None
    return begin


def _is_late(step: Step, contents: Contents) -> bool:
    if step.native is not None or step.nothing_to_do:
        return False
    values = (*step.op.operands, *step.op.results)
    return any(v is not None and v not in contents.placed for v in values)


def _can_move(op: Op) -> bool:
    """Return whether an operator computes the same in another graph, whenever that is made."""
    if find_stateful(op) is not None and (isinstance(op, CallOnce) or not op.called_graphs()):
        return False
    values = [v for v in (*op.operands, *op.results) if v is not None]
    return not any(
        v.is_variable or v.dtype == TensorType.STRING or v.block_tensors != (None, None)
        for v in values
    )


def _deciding(op: Op) -> list[Value]:
    """List the operands whose contents decide extents: computed sizes, axes and places. None where
    one of them is too long to be compared.
    """
    indices = [
        value
        for slot, value in enumerate(op.operands)
        if value is not None and op.operand_field(slot).dtypes and not value.is_constant
    ]
    short = all(None not in v.shape and np.prod(v.dims) <= MOST_DECIDING for v in indices)
    return indices if short else []


class Tail:
    """The steps of a plan from the first one on whose extents are known only when it runs.

    Where sizes, axes or places that are computed decide the extents, the steps are planned for what
    these hold; elsewhere the first step is run by its reference, and the others are planned for the
    extents of its results. The plan stands as long as this key to it does. For another one the
    references run, until the same comes twice in a row.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        contents: Contents,
        plan_tail: PlanTail,
        crew: Crew | None,
        meter: Meter,
    ) -> None:
        self._deciding = _deciding(steps[0].op)
        count = 0 if self._deciding else 1
        self._first, self._others = steps[:count], steps[count:]
        self._before, self._behind = (
            Schedule(part, crew, contents, meter) for part in (self._first, self._others)
        )
        self._computed = [value for step in self._first for value in step.op.results]
        self._contents, self._plan_tail = contents, plan_tail
        watched = [contents.arrays[value].tobytes for value in self._deciding]
        self._key = _joined(watched) if watched else self._extents
        self._known: object = None
        self._last: object = None
        self._part: _Part | None = None
        self._is_shown = False
        self._steady: Sequence[Callable[[], object]] = ()

    @property
    def length(self) -> int:
        """How many steps of the plan these are."""
        return len(self._first) + len(self._others)

    @property
    def plan(self) -> Plan | None:
        """Plan that the steps are compiled to, None as long as the references run."""
        return None if self._part is None else self._part.plan

    @property
    def steps(self) -> list[Step]:
        """The steps as they are run for the present key."""
        return [*self._first, *(self._others if self._part is None else self._part.steps)]

    def run(self) -> None:
        """Run every step."""
        if self._steady and self._key() == self._known:  # in all 150 ns
            for call in self._steady:
                call()
        else:
            self._run_anew()

    def _run_anew(self) -> None:
        """Run the part that the key asks for, and make the results readable."""
        self._begin()
        self._before.run()
        part = self._present_part()
        if part is None:
            self._behind.run()
            return
        for call in part.calls:
            call()
        self._show(part)

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step of ``steps`` and return the nanoseconds that each took."""
        self._begin()
        times = self._before.run_timed()
        part = self._present_part()
        if part is None:
            self._part = self._known = None  # so that ``steps`` are those that run
            return np.concatenate([times, self._behind.run_timed()])
        others = part.run_timed()
        self._show(part)
        return np.concatenate([times, others])

    def leave(self) -> None:
        """Forget the results of the last run: others compute them now."""
        self._is_shown, self._steady = False, ()
        self._contents.forget()

    def _begin(self) -> None:
        """Leave out tensors that are about to be computed."""
        self._contents.forget(self._computed if self._is_shown else None)

    def _present_part(self) -> _Part | None:
        """Return the compiled part for the present key, None where the references are to run."""
        key = self._key()
        if key != self._known:
            self._learn(key)
        if key == self._known and self._part is not None:
            return self._part
        self._hide()
        return None

    def _extents(self) -> tuple[tuple[int, ...], ...]:
        return tuple([self._contents.arrays[value].shape for value in self._computed])

    def _learn(self, key: object) -> None:
        """Compile for the first key, and for one that comes twice in a row."""
        if self._known is None or key == self._last:
            self._hide()
            self._part, self._known = None, key
            part = accepted(self._compiled)
            self._part = None if isinstance(part, Declined) else part
        self._last = key

    def _compiled(self) -> _Part:
        return _Part(self._others, self._deciding, self._contents, self._plan_tail)

    def _show(self, part: _Part) -> None:
        """Make the results readable where the references put theirs."""
        self._contents.arrays.update(part.late_results())
        self._is_shown = True
        is_steady = not self._computed and not part.plan.has_tail
        self._steady = part.calls if is_steady else ()

    def _hide(self) -> None:
        if self._is_shown:
            self._is_shown, self._steady = False, ()
            self._contents.forget(self._contents.late.difference(self._computed))


def _joined(parts: Sequence[Callable[[], bytes]]) -> Callable[[], object]:
    """Make one function of several that return bytes, the one alone where there are no others."""
    return parts[0] if len(parts) == 1 else lambda: tuple([part() for part in parts])


class _Part:
    """Steps that are planned for the contents of certain tensors, and for the extents of all
    others.

    Raises what planning raises.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        fixed: Collection[Value],
        contents: Contents,
        plan_tail: PlanTail,
    ) -> None:
        self._arrays = contents.arrays
        self._graph = _Graph(fixed, contents.arrays)
        for step in steps:
            self._graph.append(step.op)
        self._sources = {twin: s.source for twin, s in zip(self._graph.ops, steps, strict=True)}
        placed = contents.placed.difference(fixed)
        twins = {v: twin for v, twin in self._graph.twins.items() if v in placed}
        kept = {twin: contents.arrays[v] for v, twin in twins.items() if not _is_view(twin)}
        self.plan = plan_tail(self._graph.graph, kept)
        late = [(v, twin) for v, twin in self._graph.given() if v not in placed]
        self._copied = [(self._array(twin), v) for v, twin in late]
        self._back = [
            (contents.arrays[v], self._array(twin))
            for v, twin in twins.items()
            if twin.producer is not None and self._array(twin) is not contents.arrays[v]
        ]
        self._late = {v: t for v, t in self._graph.twins.items() if v in contents.late}
        self.calls = [*([self._take] if self._copied else []), *self.plan.calls]
        if self._back:
            self.calls.append(self._bring_back)

    def _array(self, twin: Value) -> Array:
        array = self.plan.array(twin)
        assert array is not None, "its extents are known"
        return array

    @property
    def steps(self) -> list[Step]:
        """The steps of the plan, and the operators for which they stand."""
        return [replace(step, source=self._sources[step.source]) for step in self.plan.steps]

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took."""
        self._take()
        times = self.plan.run_timed()
        self._bring_back()
        return times

    def late_results(self) -> dict[Value, Array]:
        """Gather the contents of tensors that have no place in the plan around."""
        pairs = ((v, self.plan.array(twin)) for v, twin in self._late.items())
        return {v: array for v, array in pairs if array is not None}

    def _take(self) -> None:
        for place, value in self._copied:
            place[...] = self._arrays[value]

    def _bring_back(self) -> None:
        """Copy tensors that are constants or views here, and have a place in the plan around."""
        for place, array in self._back:
            place[...] = array


def _is_view(value: Value) -> bool:
    """Return whether a tensor is its operator's operand under another shape."""
    return value.producer is not None and value.producer.op.reshapes


class _Graph:
    """A graph made of some operators of another one: what they are given are its inputs, or
    constants where it is ``fixed``. ``twins`` are its tensors by those of the other.
    """

    def __init__(self, fixed: Collection[Value], arrays: Mapping[Value, Array]) -> None:
        self.graph = Graph("tail")
        self.twins: dict[Value, Value] = {}
        self._fixed, self._arrays = fixed, arrays

    @property
    def ops(self) -> Sequence[Op]:
        """The operators, in the order in which they were appended."""
        return self.graph.ops

    def given(self) -> list[tuple[Value, Value]]:
        """List the inputs, and the tensors for which they stand."""
        return [(v, twin) for v, twin in self.twins.items() if twin.is_input]

    def append(self, op: Op) -> None:
        """Add a copy of an operator."""
        new = op.clone([None if v is None else self._operand(v) for v in op.operands])
        new.intermediates = tuple([self._twin(v) for v in op.intermediates])
        self.graph.append(new, results=[self._twin(v) for v in op.results])
        outputs = [self.twins[v] for v in op.results if v.is_output]
        self.graph.outputs = [*self.graph.outputs, *outputs]

    def _twin(self, value: Value) -> Value:
        if value not in self.twins:
            self.twins[value] = self.graph.add_value(value.clone())
        return self.twins[value]

    def _operand(self, value: Value) -> Value:
        is_new = value not in self.twins
        twin = self._twin(value)
        if is_new and value in self._fixed:
            twin.make_constant(self._arrays[value], value.dtype)
        elif is_new and not value.is_constant:
            twin.shape = self._arrays[value].shape
            self.graph.inputs = [*self.graph.inputs, twin]
        return twin
