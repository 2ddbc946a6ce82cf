"""Compile loops: a WHILE becomes one step of a plan, over the elements of lists or as long as its
condition holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.calls import CallKey
from luciole.interpreter.plan import Plan
from luciole.ir import Array, Graph, Op, Value
from luciole.ir.calls import reachable
from luciole.ir.ops.control_flow import While
from luciole.ir.passes.scans import Scan, scan_of
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.budget import Budget
from luciole.kernels.core.contract import Built, NativeStep
from luciole.kernels.core.loops import Loop, Part
from luciole.kernels.core.reasons import Declined

PlanBody = Callable[[Graph], Plan | Declined]
"""Plan a body, each of whose tensors has memory of its own, where that can be done."""


def compiled_loop(
    op: While, arrays: Mapping[Value, Array], plan_body: PlanBody, budget: Budget
) -> Built:
    """Make the step of a loop whose operands and results have places; None where its body is not
    compiled throughout, and for loops that are no ``Scan``.
    """
    scan = scan_of(op)
    if scan is None or any(v.is_variable for v in scan.body.values):
        return None
    operands, results = ([arrays[v] for v in values] for values in (op.inputs, op.results))
    if not all(map(_alike, operands, results)):
        return None
    for value, place in zip(scan.body.inputs, (*scan.held, *scan.states), strict=False):
        value.shape = operands[place].shape  # which the file may leave open, even their number
    plan = plan_body(scan.body)
    if isinstance(plan, Declined):
        return plan
    steps = _unfailing(_steps(plan))
    if isinstance(steps, Declined):
        return steps
    inputs, outputs = (_arrays(plan, v) for v in (scan.body.inputs, scan.body.outputs))
    if inputs is None or outputs is None:
        return None
    loop = _Arrays(scan, operands, results, inputs, outputs).loop()
    return None if loop is None else loop.counted(steps, scan.steps, budget)


def repeated(
    op: While, arrays: Mapping[Value, Array], plan_body: PlanBody, budget: Budget
) -> Built:
    """Make the step of a loop whose operands and results have places and that goes on while its
    condition holds; None where condition or body are not compiled throughout, have variables, or
    hand on other types or shapes.
    """
    operands, results = ([arrays[v] for v in values] for values in (op.inputs, op.results))
    if not all_alike(operands, results):
        return None
    asked = called(op.condition_graph, operands, plan_body)
    if not isinstance(asked, Called):
        return asked
    body = called(op.body_graph, operands, plan_body)
    if not isinstance(body, Called):
        return body
    if not all_alike(body.outputs, body.inputs):
        return None
    if [(a.size, a.dtype.kind) for a in asked.outputs] != [(1, "b")]:
        return Declined("its condition is not one truth value")
    steps = _unfailing([*asked.steps, *body.steps])
    if isinstance(steps, Declined):
        return steps
    loop = _repeat(operands, results, asked, body)
    return loop.repeated(asked.steps, body.steps, asked.outputs[0], budget)


def call_key(op: Op, arrays: Mapping[Value, Array]) -> CallKey:
    """Return a key of a call that differs where it may be compiled differently: its graphs, types
    and shapes of its operands, and numbers that are constant.
    """
    present = [v for v in op.operands if v is not None]
    operands = [(arrays[v].dtype.str, arrays[v].shape, _number(v)) for v in present]
    return (*op.called_graphs(), *operands)


def _number(value: Value) -> bytes | None:
    data = value.data if value.dims in ((), (1,)) else None
    return None if data is None else data.tobytes()


@dataclass(frozen=True)
class Called:
    """A graph that an operator calls, copied: its compiled steps, and the places of inputs and
    outputs.
    """

    graph: Graph
    steps: Sequence[NativeStep]
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    def reads(self, place: int) -> bool:
        """Return whether an input is looked at."""
        value = self.graph.inputs[place]
        return bool(value.users) or value.is_output

    def hands_on(self, place: int) -> bool:
        """Return whether an output is the input of the same place."""
        return self.graph.outputs[place] is self.graph.inputs[place]


def called(
    graph: Graph, operands: Sequence[Array], plan_body: PlanBody
) -> Called | Declined | None:
    """Compile a graph for operands that its inputs take as they are, where that can be done."""
    if any(value.is_variable for called in reachable(graph) for value in called.values):
        return Declined(f"graph {graph.name!r} has variables")
    copy, _ = graph.clone()
    if not len(set(copy.inputs)) == len(copy.inputs) == len(operands):
        return None
    for value, array in zip(copy.inputs, operands, strict=True):
        value.shape = array.shape
    plan = plan_body(copy)
    if isinstance(plan, Declined):
        return plan
    steps = _steps(plan)
    if isinstance(steps, Declined):
        return steps
    inputs, outputs = (_arrays(plan, values) for values in (copy.inputs, copy.outputs))
    if inputs is None or outputs is None or not all_alike(inputs, operands):
        return None
    return Called(copy, steps, inputs, outputs)


def _repeat(
    operands: Sequence[Array], results: Sequence[Array], asked: Called, body: Called
) -> Loop:
    """Plan the copies of a loop. Between turns the body's inputs hold what is handed on; where some
    of it would overwrite the rest, it goes by the results.
    """
    places = range(len(operands))
    seen = [n for n in places if asked.reads(n)]
    moved = [n for n in places if not body.hands_on(n)]
    first = [Part(operands[n], body.inputs[n]) for n in places]
    first += [Part(operands[n], asked.inputs[n]) for n in seen if n not in moved]
    shown = [Part(body.inputs[n], asked.inputs[n]) for n in seen if n in moved]
    sources, writes = body.outputs, []
    if _entangled(body.inputs, body.outputs):
        writes = [Part(sources[n], results[n]) for n in moved]
        sources = results
    writes += [Part(sources[n], body.inputs[n]) for n in moved]
    last = [Part(body.inputs[n], results[n]) for n in places]
    return Loop(first, shown, writes, last)


def _steps(plan: Plan) -> list[NativeStep] | Declined:
    """List the steps of a graph that is called; Declined where some are not compiled."""
    steps = plan.compiled_steps()
    return _not_compiled(plan) if steps is None else steps


def _unfailing(steps: Sequence[NativeStep] | Declined) -> Sequence[NativeStep] | Declined:
    """Decline steps that may fail and forget it: a loop repeats them, and nobody asks between."""
    if isinstance(steps, Declined) or all(s.check is None or s.remembers for s in steps):
        return steps
    return Declined("an operator in its body may refuse")


def _not_compiled(plan: Plan) -> Declined:
    """Name the operator of a body that is not compiled, and the reason."""
    step = next(s for s in plan.steps if s.native is None and not s.nothing_to_do)
    return Declined(f"{step.op.kind} in its body is not compiled: {step.reason or 'it has state'}")


def _arrays(plan: Plan, values: Sequence[Value]) -> list[Array] | None:
    present = [array for array in map(plan.array, values) if array is not None]
    return present if len(present) == len(values) else None


def _alike(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape


def all_alike(these: Sequence[Array], those: Sequence[Array]) -> bool:
    """Return whether arrays have the same types and shapes, one by one."""
    return len(these) == len(those) and all(map(_alike, these, those))


class _Arrays:
    """The operands and results of a loop beside the inputs and outputs of its body."""

    def __init__(
        self,
        scan: Scan,
        operands: Sequence[Array],
        results: Sequence[Array],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
    ) -> None:
        self._scan, self._operands, self._results = scan, operands, results
        self._inputs, self._outputs = inputs, outputs

    def loop(self) -> Loop | None:
        """Plan the copies of a loop. None where arrays are not as long as they should be, and where
        the next state stands where another one is still read.
        """
        scan, operands, results = self._scan, self._operands, self._results
        count = len(scan.held) + len(scan.states)
        carried, elements = self._inputs[:count], self._inputs[count:]
        states, items = carried[len(scan.held) :], self._outputs[: len(scan.states)]
        first = list(self._paired(operands, (*scan.held, *scan.states), carried))
        reads = [Part(operands[n], to) for n, to in zip(scan.read, elements, strict=True)]
        made = self._outputs[len(scan.states) :]
        writes = [Part(item, results[n]) for n, item in zip(scan.written, made, strict=True)]
        whole = [(a.source, a.to) for a in first]
        if not all(_alike(*pair) for pair in (*whole, *zip(items, states, strict=True))):
            return None
        lists = [(part.to, part.source) for part in reads]
        lists += [(part.source, part.to) for part in writes]
        if not all(self._is_element(*pair) for pair in lists) or _entangled(states, items):
            return None
        changed = [(item, to) for item, to in zip(items, states, strict=True) if item is not to]
        first += [Part(operands[n], results[n]) for n in self._kept()]
        last = [Part(at, results[n]) for n, at in zip(scan.states, states, strict=True)]
        last += [Part(self._count(n), results[n]) for n in scan.counts]
        return Loop(first, reads, [*writes, *(Part(*pair) for pair in changed)], last)

    def _paired(
        self, arrays: Sequence[Array], places: Sequence[int], to: Sequence[Array]
    ) -> Iterator[Part]:
        return (Part(arrays[n], array) for n, array in zip(places, to, strict=True))

    def _kept(self) -> list[int]:
        """List the places of operands that no step makes anew and that are no counters."""
        made = {*self._scan.states, *self._scan.counts}
        return [n for n in range(len(self._operands)) if n not in made]

    def _count(self, place: int) -> Array:
        result = self._results[place]
        return placed(np.full(result.shape, self._scan.counts[place], result.dtype))

    def _is_element(self, element: Array, items: Array) -> bool:
        """Return whether a list has an element of this size for each step."""
        length = len(items) if items.ndim else 0
        fits = element.size * length == items.size and element.dtype == items.dtype
        return fits and self._scan.steps <= length


def _entangled(states: Sequence[Array], items: Sequence[Array]) -> bool:
    """Return whether writing a state would overwrite one that is still to be copied."""
    return any(
        np.shares_memory(item, state)
        for n, item in enumerate(items)
        for m, state in enumerate(states)
        if n != m
    )
