"""Run other graphs of the model for operators that call them, and keep the state that outlives a
run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from luciole.ir import Array, Graph, LucioleError, Op, Value
from luciole.ir.strings import OBJECTS
from luciole.kernels.core.contract import Calls, Reference, Stateful
from luciole.kernels.core.meter import Meter
from luciole.kernels.core.reasons import Declined
from luciole.kernels.core.state import State

if TYPE_CHECKING:
    from luciole.interpreter.plan import Plan

DEFAULT_LOOP_LIMIT = 100_000
"""Steps that all WHILE of a run may do together unless the caller raises it."""

MOST_PLANS = 16
"""Plans kept of a graph, one for each set of shapes that it is called with."""

Shapes = tuple[tuple[int, ...], ...]
CallKey = tuple[Hashable, ...]
"""The graphs that an operator calls, and the known facts of its operands."""

MakePlan = Callable[[Graph, Sequence[tuple[int, ...]]], "Plan"]


class Caller:
    """State that the plans of an interpreter share: variables, plans of the graphs that are called,
    and the meter of their memory.

    ``bodies`` are the plans of graphs whose calls are compiled; ``declined`` says why others are
    not.
    """

    def __init__(self, loop_limit: int, memory_limit: int) -> None:
        self.state = State(loop_limit)
        self.meter = Meter(memory_limit)
        self.bodies: list[Plan] = []
        self.declined: dict[CallKey, Declined] = {}
        self._called: dict[Graph, dict[Shapes, _Called]] = {}

    def bound(self, kernel: Stateful, make_plan: MakePlan) -> Reference:
        """Make a reference kernel of a stateful one, whose calls of graphs are made for it."""

        def run(op: Op, *operands: Any) -> Any:
            outcome = kernel(op, self.state, *operands)
            return self._drive(outcome, make_plan) if isinstance(outcome, Generator) else outcome

        return run

    @property
    def taken_bytes(self) -> int:
        """Bytes that the plans of called graphs have taken."""
        plans = [called.plan for called in self._all()]
        return sum(plan.taken_bytes for plan in (*plans, *self.bodies))

    def reset_variables(self) -> None:
        """Set the variable tensors of all called graphs to their initial contents."""
        for called in self._all():
            called.plan.reset_variables()

    def _all(self) -> Iterator[_Called]:
        for plans in self._called.values():
            yield from plans.values()

    def _drive(self, calls: Calls, make_plan: MakePlan) -> tuple[Array, ...]:
        returned: tuple[Array, ...] | None = None
        while True:
            try:
                graph, arguments = next(calls) if returned is None else calls.send(returned)
            except StopIteration as end:
                results: tuple[Array, ...] = end.value
                return results
            returned = self._call(graph, arguments, make_plan)

    def _call(
        self, graph: Graph, arguments: Sequence[Array], make_plan: MakePlan
    ) -> tuple[Array, ...]:
        plans = self._called.setdefault(graph, {})
        shapes = tuple([array.shape for array in arguments])
        called = plans.get(shapes)
        if called is None:
            if len(plans) >= MOST_PLANS:
                del plans[next(iter(plans))]  # the oldest
            called = plans[shapes] = _Called(graph, make_plan(graph, shapes))
        return called(arguments)


class _Called:
    """A graph and its plan for certain shapes, to be called with arrays of these shapes."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        plan.reset_variables()
        self.plan = plan
        self._graph = graph
        self._inputs = [(plan.array(value), value) for value in graph.inputs]

    def __call__(self, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """Return copies of the graph's results. Raises LucioleError for other element types."""
        for (place, value), array in zip(self._inputs, arguments, strict=True):
            if place is None or array.dtype != place.dtype:
                raise LucioleError(
                    f"input {value.name!r} of graph {self._graph.name!r} is {value.dtype.name}, "
                    f"not {array.dtype}"
                )
            if array.dtype == OBJECTS:
                self.plan.give(value, array)
            else:
                place[...] = array
        self.plan.run()
        return tuple([self._contents(value).copy() for value in self._graph.outputs])

    def _contents(self, value: Value) -> Array:
        array = self.plan.array(value)
        if array is None:
            raise LucioleError(
                f"nothing computed output {value.name!r} of graph {self._graph.name!r}"
            )
        return array
