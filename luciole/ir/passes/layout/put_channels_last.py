"""Let images that a graph takes and gives have their channels last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.rewriting.patterns import inverse, made_by, order_of
from luciole.ir.value import Value


@graph_pass(on_request=True)
def put_channels_last(graph: Graph) -> bool:
    """Inputs and outputs with channels first -> with channels last.

    Inputs that only a TRANSPOSE to channels last reads get that order of axes, and outputs that one
    to channels first makes the order before it. Names stay; signatures follow.
    """
    changes = [_input(graph, value) for value in list(graph.inputs)]
    changes += [_output(graph, value) for value in list(graph.outputs)]
    if any(changes):
        run_passes(graph, (sink_transposes,))
    return any(changes)


def last(rank: int) -> tuple[int, ...]:
    """Give the order of axes that puts the second one behind all others."""
    return (0, *range(2, rank), 1)


def _input(graph: Graph, value: Value) -> bool:
    rank = len(value.shape)
    reading = [use.op for use in value.users]
    if rank < 3 or value.is_output or not reading:
        return False
    orders = [order_of(op) if isinstance(op, Transpose) else None for op in reading]
    if any(order != last(rank) for order in orders):
        return False
    for op in reading:
        assert isinstance(op, Transpose), "all are"
        op.output.replace_with(value)
        graph.remove(op)
    value.shape = tuple(value.shape[axis] for axis in last(rank))
    return True


def _output(graph: Graph, value: Value) -> bool:
    op = made_by(value, Transpose)
    rank = len(value.shape)
    if op is None or rank < 3 or value.users or op.a.is_input or op.a.is_constant:
        return False
    if order_of(op) != inverse(last(rank)) or op.a.is_output:
        return False
    name, before = value.name, op.a
    graph.rename_in_signatures(value, before)
    graph.outputs = [before if v is value else v for v in graph.outputs]
    graph.remove(op)
    before.name = name
    return True
