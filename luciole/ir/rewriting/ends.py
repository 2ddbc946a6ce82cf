"""Turn what a graph takes and gives to another order of axes."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.patterns import inverse, made_by, order_of
from luciole.ir.value import Value


def turn_inputs(graph: Graph) -> bool:
    """Give inputs that only a TRANSPOSE to channels last reads that order of axes."""
    changes = [_input(graph, value) for value in list(graph.inputs)]
    return any(changes)


def turn_outputs(graph: Graph) -> bool:
    """Replace outputs that a TRANSPOSE to channels first makes by its operand."""
    changes = [_output(graph, value) for value in list(graph.outputs)]
    return any(changes)


def last(rank: int) -> tuple[int, ...]:
    """Give the order of axes that puts the second one behind all others."""
    return (0, *range(2, rank), 1)


def _input(graph: Graph, value: Value) -> bool:
    rank = len(value.shape)
    reading = [use.op for use in value.users]
    if rank < 3 or value.is_output or not reading:
        return False
    if any(result.is_output for op in reading for result in op.results):
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
