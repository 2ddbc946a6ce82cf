"""Compile a graph: settle it, lay out its tensors, take memory, build its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from luciole.interpreter.calls import DEFAULT_LOOP_LIMIT, Caller
from luciole.interpreter.choices import chosen
from luciole.interpreter.contents import Contents, hold
from luciole.interpreter.crew import Crew
from luciole.interpreter.loops import call_key, compiled_loop, repeated
from luciole.interpreter.memory import arena_layout
from luciole.interpreter.plan import Plan
from luciole.interpreter.settle import Settled, settle
from luciole.interpreter.simulated import obstacle
from luciole.interpreter.stateful_plan import StatefulPlan
from luciole.interpreter.steps import OPEN, Step, build
from luciole.interpreter.tails import DEEPEST, Tail, begin_of_tail
from luciole.ir import Array, Graph, Op, UnsupportedError, Value
from luciole.ir.calls import reachable
from luciole.ir.ops.control_flow import Calling, While
from luciole.kernels.core import registry
from luciole.kernels.core.contract import Built, NativeStep, Reference
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.jit import with_compiled

DEFAULT_MEMORY_LIMIT = 4 << 30
"""Bytes of tensors that a model may ask for unless the caller raises it."""


def compile_graph(
    graph: Graph,
    shapes: Mapping[Value, tuple[int, ...]],
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    keep: bool = False,
    crew: Crew | None = None,
    caller: Caller | None = None,
    compiled: bool = True,
) -> Plan:
    """Make the plan of a graph whose inputs have the given shapes.

    Tensors whose lifetimes do not meet share memory; with ``keep`` none do, so that all can be read
    after a run. Threads of a ``crew`` share the steps that can be shared. ``caller`` runs the
    graphs that operators call and keeps variables; plans that share it share them. Unless kernels
    are to be ``compiled``, NumPy computes everything.

    Raises UnsupportedError and MemoryLimitError, GraphError for graphs that call themselves, and
    what ``settle`` raises.
    """
    ops = [op for called in reachable(graph) for op in called.ops]
    _refuse_unsupported(ops)
    caller = Caller(DEFAULT_LOOP_LIMIT, memory_limit) if caller is None else caller
    plan = _Compiler(caller, crew, memory_limit, keep, compiled).plan(graph, shapes, {})
    if any(isinstance(op, While) for op in ops):
        plan.begin_with(caller.state.budget.begin)
    return plan


@dataclass(frozen=True)
class _Compiler:
    """Settings of plans: the caller of graphs, threads, bytes that may be taken, whether all
    tensors can be read after a run, whether kernels are compiled, and in how many plans the next
    one stands.
    """

    caller: Caller
    crew: Crew | None
    memory_limit: int
    keep: bool
    compiled: bool
    depth: int = 0

    def plan(
        self,
        graph: Graph,
        shapes: Mapping[Value, tuple[int, ...]],
        places: Mapping[Value, Array],
    ) -> Plan:
        """Make the plan of a graph some tensors of which may have places already."""
        caller, crew = self.caller, self.crew
        with caller.meter:
            settled = settle(graph, shapes, self.memory_limit)
            placed = _given(settled, places)
            layout = arena_layout(settled, self.memory_limit, self.keep, placed)
            held = hold(settled, layout, caller.meter, placed)
            left = self.memory_limit - settled.made_bytes - layout.size
            called = _CalledGraphs(caller, crew, left, self.compiled)
            steps = with_compiled(
                lambda: build(settled, layout, held, called.reference, called.native, self.compiled)
            )
            if any(step.context is not None for step in steps):
                return StatefulPlan(
                    settled, layout, held, steps, crew, caller.meter, state=caller.state
                )
            tail = self._tail(steps, held, left)
            return Plan(settled, layout, held, steps, crew, caller.meter, tail=tail)

    def _tail(self, steps: Sequence[Step], held: Contents, left: int) -> Tail | None:
        """Find the steps that are to be planned while the others run."""
        begin = begin_of_tail(steps, held) if self.depth < DEEPEST else None
        if begin is None:
            return None
        inner = replace(self, memory_limit=left, keep=True, depth=self.depth + 1)

        def plan_tail(graph: Graph, places: Mapping[Value, Array]) -> Plan:
            return inner.plan(graph, {v: v.dims for v in graph.inputs}, places)

        return Tail(steps[begin:], held, plan_tail, self.crew, self.caller.meter)


def _given(settled: Settled, places: Mapping[Value, Array]) -> dict[Value, Array]:
    """Find the tensors of a settled graph that have places, and are no constants now."""
    arrays = {settled.values[value]: array for value, array in places.items()}
    return {v: a for v, a in arrays.items() if v not in settled.constants and v.shape == a.shape}


@dataclass(frozen=True)
class _CalledGraphs:
    """How operators of a plan call graphs: within the bytes that it has ``left``."""

    caller: Caller
    crew: Crew | None
    left: int
    compiled: bool

    def reference(self, op: Op) -> Reference:
        """Find an operator's kernel; one with state, or that calls graphs, is given both."""
        kernel = registry.find_stateful(op)
        if kernel is None:
            return registry.find_reference(op)
        return self.caller.bound(kernel, self._plan)

    def native(self, op: Calling, arrays: Mapping[Value, Array]) -> NativeStep | Declined:
        """Compile an operator whose tensors have these places, Declined where that cannot be done.

        It is tried once: loops in loops would double the tries with each level.
        """
        declined, key = self.caller.declined, call_key(op, arrays)
        if key in declined:
            return declined[key]
        step = self._compiled(op, arrays)
        if isinstance(step, Declined):
            declined[key] = step
        return step

    def _compiled(self, op: Calling, arrays: Mapping[Value, Array]) -> NativeStep | Declined:
        """Compile an operator in one of the ways there are; of several reasons the last counts."""
        budget, bodies, declined = self.caller.state.budget, self.caller.bodies, OPEN
        for make in WAYS.get(type(op), (chosen,)):
            before = len(bodies)
            step = accepted(make, op, arrays, self._plan_body, budget)
            if isinstance(step, NativeStep):
                return step
            declined = step or declined
            del bodies[before:]
        return declined

    def _plan_body(self, body: Graph) -> Plan | Declined:
        """Plan a graph that is called; Declined where threads share its work."""
        shapes = {value: value.dims for value in body.inputs}
        plan = _Compiler(self.caller, None, self._left_now(), keep=True, compiled=True).plan(
            body, shapes, {}
        )
        steps, crew = plan.compiled_steps() or (), self.crew
        if crew is not None and any(step.split and step.split(crew.threads) for step in steps):
            return Declined("threads share its work")
        self.caller.bodies.append(plan)
        return plan

    def _left_now(self) -> int:
        return self.left - self.caller.taken_bytes

    def _plan(self, graph: Graph, shapes: Sequence[tuple[int, ...]]) -> Plan:
        """Make the plan of a graph that an operator calls, within the memory that is left."""
        if len(shapes) != len(graph.inputs):
            raise ExecutionError(
                f"graph {graph.name!r} takes {len(graph.inputs)} arguments, not {len(shapes)}"
            )
        argument_shapes = dict(zip(graph.inputs, shapes, strict=True))
        compiler = _Compiler(
            self.caller, self.crew, self._left_now(), keep=False, compiled=self.compiled
        )
        return compiler.plan(graph, argument_shapes, {})


WAYS: dict[type[Op], Sequence[Callable[..., Built]]] = {While: (compiled_loop, repeated)}
"""How operators that call graphs may be compiled, unless they choose one of some."""


def _refuse_unsupported(ops: Sequence[Op]) -> None:
    """Raise one UnsupportedError that lists everything that has no kernel."""
    reasons: dict[str, list[str]] = {}
    for op in ops:
        try:
            if registry.find_stateful(op) is None:
                registry.find_reference(op)
        except UnsupportedError as error:
            if obstacle(op) is not None:
                continue  # it is computed in floats
            reasons.setdefault(op.kind, []).append(str(error))
    if reasons:
        kinds = ", ".join(f"{kind} ({len(why)}x)" for kind, why in reasons.items())
        first = next(iter(reasons.values()))[0]
        raise UnsupportedError(f"cannot run {kinds}: {first}", list(reasons))
