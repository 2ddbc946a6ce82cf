"""Operators that call other graphs: which of them run, on what, and how often."""

from __future__ import annotations

from luciole.ir import Array, LucioleError
from luciole.ir.calls import Call
from luciole.ir.ops import control_flow as ops
from luciole.kernels.core.contract import Calls, Context, NativeStep
from luciole.kernels.core.registry import stateful, stateful_native
from luciole.kernels.core.state import State
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable


@stateful(ops.If)
def if_(op: ops.If, state: State, condition: Array, inputs: tuple[Array, ...]) -> Calls:
    """Call one of the two graphs, by a condition of one element."""
    return (yield Call(op.then_graph if _truth(condition) else op.else_graph, inputs))


@stateful(ops.StablehloCase)
def case(op: ops.StablehloCase, state: State, index: Array, inputs: tuple[Array, ...]) -> Calls:
    """Call a branch by its number, an index of one element."""
    if index.size != 1:
        raise LucioleError(f"the index has {index.size} elements, 1 is needed")
    number = int(index.reshape(-1)[0])
    known = 0 <= number < len(op.branches)
    return (yield Call(op.branches[number if known else -1], inputs))


@stateful(ops.While)
def while_(op: ops.While, state: State, inputs: tuple[Array, ...]) -> Calls:
    """Call the body while the condition holds. Raises LucioleError where the state's budget has no
    step left.
    """
    while True:
        (condition,) = yield Call(op.condition_graph, inputs)
        if not _truth(condition):
            return inputs
        state.budget.spend()
        inputs = yield Call(op.body_graph, inputs)


@stateful(ops.Call)
@stateful(ops.StablehloComposite)
def call(op: ops.Delegating, state: State, inputs: tuple[Array, ...]) -> Calls:
    """Call the graph."""
    return (yield Call(op.whole, inputs))


@stateful(ops.CallOnce)
def call_once(op: ops.CallOnce, state: State) -> Calls:
    """Call the graph unless it ran already."""
    if op.init_graph not in state.once:
        yield Call(op.init_graph, ())
        state.once.add(op.init_graph)
    return ()


@stateful_native(ops.CallOnce)
def build_call_once(op: ops.CallOnce, state: State, context: Context) -> NativeStep | None:
    """Do nothing once the graph ran."""
    return copy.step([]) if op.init_graph in state.once else None


def _truth(condition: Array) -> bool:
    if condition.size != 1:
        raise LucioleError(f"the condition has {condition.size} elements, 1 is needed")
    return bool(condition.reshape(-1)[0])


@portable(ops.CallOnce, ())
def call_once_in_c(op: ops.CallOnce, context: PortableContext) -> list[CCall]:
    """Do nothing: what the graph sets is what variables begin with."""
    del op, context
    return []
