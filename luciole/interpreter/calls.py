"""Run other graphs of the model for operators that call them, and keep what outlives a run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Op
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import shape_text
from luciole.kernels.registry import Reference, Stateful
from luciole.kernels.state import State

if TYPE_CHECKING:
    from luciole.interpreter.plan import Plan

DEFAULT_LOOP_LIMIT = 1_000_000
"""Steps that a WHILE may do unless the caller raises it."""

MOST_PLANS = 16
"""Plans kept: a graph has one for each set of shapes that it is called with."""

Shapes = tuple[tuple[int, ...], ...]
MakePlan = Callable[[Graph, Sequence[tuple[int, ...]]], "Plan"]


class Caller:
    """What the plans of an interpreter share: variables, and plans of the graphs that are called.

    ``make_plan`` makes the plan of a graph for the shapes of its inputs.
    """

    def __init__(self, loop_limit: int) -> None:
        self.state = State(loop_limit)
        self._plans: OrderedDict[tuple[Graph, Shapes], Plan] = OrderedDict()

    def bound(self, kernel: Stateful, make_plan: MakePlan) -> Reference:
        """A stateful kernel as a reference kernel that has its calls made."""

        def run(op: Op, *operands: Any) -> Any:
            found = kernel(op, self.state, *operands)
            return self._drive(found, make_plan) if isinstance(found, Generator) else found

        return run

    @property
    def arena_bytes(self) -> int:
        """Bytes that the plans of called graphs have taken."""
        return sum(plan.arena_bytes for plan in self._plans.values())

    def reset_variables(self) -> None:
        """Set the variable tensors of all called graphs to their initial contents."""
        for plan in self._plans.values():
            plan.reset_variables()

    def forget(self) -> None:
        """Drop the plans: the next calls make new ones."""
        self._plans.clear()

    def _drive(self, calls: Generator[Any, Any, Any], make_plan: MakePlan) -> Any:
        returned: tuple[Array, ...] | None = None
        while True:
            try:
                graph, arguments = calls.send(returned)
            except StopIteration as end:
                return end.value
            returned = self._call(graph, arguments, make_plan)

    def _call(
        self, graph: Graph, arguments: Sequence[Array], make_plan: MakePlan
    ) -> tuple[Array, ...]:
        _check(graph, arguments)
        key = (graph, tuple(array.shape for array in arguments))
        if key not in self._plans:
            self._plans[key] = make_plan(graph, key[1])
            self._plans[key].reset_variables()
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        plan = self._plans[key]
        for value, array in zip(graph.inputs, arguments, strict=True):
            place = plan.array(value)
            assert place is not None  # inputs last for good
            place[...] = array
        plan.run()
        return tuple(_contents(plan, graph, i).copy() for i in range(len(graph.outputs)))


def _check(graph: Graph, arguments: Sequence[Array]) -> None:
    if len(arguments) != len(graph.inputs):
        raise LucioleError(
            f"graph {graph.name!r} takes {len(graph.inputs)} arguments, not {len(arguments)}"
        )
    for value, array in zip(graph.inputs, arguments, strict=True):
        if NUMPY.get(value.dtype) != array.dtype:
            raise LucioleError(
                f"input {value.name!r} of graph {graph.name!r} is {value.dtype.name}, "
                f"not {array.dtype}"
            )


def _contents(plan: Plan, graph: Graph, number: int) -> Array:
    value = graph.outputs[number]
    array = plan.array(value)
    if array is None:
        raise LucioleError(f"nothing computed output {value.name!r} of graph {graph.name!r}")
    return array


def check_result(op: Op, number: int, array: Array) -> None:
    """Raise LucioleError unless an array is what a result is declared to be."""
    value = op.results[number]
    fits = len(array.shape) == len(value.shape) and all(
        n in (None, m) for n, m in zip(value.shape, array.shape, strict=True)
    )
    if not fits or array.dtype != NUMPY.get(value.dtype, np.dtype(object)):
        raise LucioleError(
            f"{op}: result {value.name!r} is {array.dtype} {shape_text(array.shape)}, "
            f"expected {value.dtype.name} {shape_text(value.shape)}"
        )
