"""Operators that call other graphs: which of them run, on what, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luciole.ir import Array, LucioleError, UnsupportedError, Value
from luciole.ir.calls import Call
from luciole.ir.ops import control_flow as ops
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Calls, Context, NativeStep
from luciole.kernels.core.registry import stateful, stateful_native
from luciole.kernels.core.state import State
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, Control, PortableContext, control, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import whole


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


@portable(ops.If, *MOVED, ())
def if_in_c(op: ops.If, context: PortableContext) -> list[CCall]:
    """Compute one of two graphs, and copy its outputs."""
    calls = [control(Control.IF, _single(op.condition))]
    for graph, word in ((op.then_graph, Control.ELSE), (op.else_graph, Control.END)):
        made, outputs = context.called(graph, op.inputs)
        copies = map(whole, outputs, op.results)
        calls += [*made, *copies, control(word)]
    return calls


@portable(ops.While, *MOVED, ())
def while_in_c(op: ops.While, context: PortableContext) -> list[CCall]:
    """Compute the body on what it left in the results, as long as the condition holds."""
    condition = context.called(op.condition_graph, op.results)
    body = context.called(op.body_graph, op.results)
    return [
        *map(whole, op.inputs, op.results),
        control(Control.WHILE),
        *condition.calls,
        control(Control.UNLESS, _single(condition.outputs[0])),
        *body.calls,
        *_handed_on(body.outputs, op.results),
        control(Control.END, *op.results),
    ]


def _handed_on(outputs: Sequence[Value], results: Sequence[Value]) -> Iterator[CCall]:
    """Copy the outputs of a step to the tensors that the next one reads; those that another copy
    would write over are put aside before.
    """
    copies = []
    for output, result in zip(outputs, results, strict=True):
        if output is result:
            continue
        if output in results:
            aside = Value(f"{result.name}_aside", result.dtype, result.dims)
            yield whole(output, aside)
            output = aside
        copies.append(whole(output, result))
    yield from copies


def _single(condition: Value) -> Value:
    """Return a condition. Raises UnsupportedError for several elements."""
    if element_count(condition.dims) != 1:
        raise UnsupportedError(f"the condition has {element_count(condition.dims)} elements")
    return condition
