"""Graphs as flat lists, which is how they are pickled and copied: a long chain of operators would
be too deep for Python's recursion.

Tensors, operators and graphs are spoken of by their numbers. Buffers and tables stay objects, so
that what is shared stays shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from luciole.ir.errors import GraphError
from luciole.ir.fields import for_graphs
from luciole.ir.op import Op
from luciole.ir.value import Producer, Use, Value, map_blocks

if TYPE_CHECKING:
    from luciole.ir.graph import Graph

Place = tuple[int, int]
"""An operator's number and a slot of it."""


@dataclass
class FlatValue:
    """A tensor: its own attributes, who makes it, who uses it, and what its blocks speak of."""

    attributes: dict[str, Any]
    producer: Place | None
    users: list[Place]
    block_tensors: tuple[int | None, int | None]


@dataclass
class FlatOp:
    """An operator: its own attributes, graphs that it calls, and tensors. A graph that is not in
    the model stays an object.
    """

    kind: type[Op]
    attributes: dict[str, Any]
    calls: dict[str, int | Graph | tuple[int | Graph, ...]]
    operands: tuple[int | None, ...]
    results: tuple[int, ...]
    intermediates: tuple[int, ...]


@dataclass
class FlatGraph:
    """A graph: its own attributes, tensors, operators in order, inputs and outputs."""

    attributes: dict[str, Any]
    values: list[FlatValue]
    ops: list[FlatOp]
    inputs: list[int]
    outputs: list[int]


def flat_graph(graph: Graph, graphs: Mapping[Graph, int]) -> FlatGraph:
    """Turn a graph into flat lists; ``graphs`` numbers those that go with it.

    Raises GraphError where operators or ends are tensors that are not in the graph.
    """
    values = {value: number for number, value in enumerate(graph.values)}
    ops = {op: number for number, op in enumerate(graph.ops)}
    try:
        return FlatGraph(
            graph.own_attributes(),
            [_flat_value(value, values, ops) for value in graph.values],
            [_flat_op(op, values, graphs) for op in graph.ops],
            [values[value] for value in graph.inputs],
            [values[value] for value in graph.outputs],
        )
    except KeyError as error:
        raise GraphError(f"graph {graph.name!r}: {error.args[0]} is not of this graph") from None


def _flat_value(value: Value, values: Mapping[Value, int], ops: Mapping[Op, int]) -> FlatValue:
    made = value.producer
    producer = None if made is None or made.op not in ops else (ops[made.op], made.slot)
    users = [(ops[use.op], use.slot) for use in value.users if use.op in ops]
    blocks = map_blocks(value.block_tensors, values.get)
    return FlatValue(value.own_attributes(), producer, users, blocks)


def _flat_op(op: Op, values: Mapping[Value, int], graphs: Mapping[Graph, int]) -> FlatOp:
    attributes, calls = op.own_attributes(), {}
    for name in [f.name for f in op.attr_fields() if f.is_graph]:
        called = attributes.pop(name, None)
        if called is not None:
            calls[name] = for_graphs(called, lambda graph: graphs.get(graph, graph))
    return FlatOp(
        type(op),
        attributes,
        calls,
        tuple(None if value is None else values[value] for value in op.operands),
        tuple(values[value] for value in op.results),
        tuple(values[value] for value in op.intermediates),
    )


def restore_graph(graph: Graph, flat: FlatGraph, graphs: Sequence[Graph]) -> None:
    """Fill an empty graph with the contents that ``flat_graph`` returned; ``graphs`` are those that
    go with it.
    """
    vars(graph).update(flat.attributes)
    graph.values = [Value.restored(value.attributes) for value in flat.values]
    graph.ops = [_restored_op(op, graph, graphs) for op in flat.ops]
    for value, stored in zip(graph.values, flat.values, strict=True):
        value.graph = graph
        value.users = [Use(graph.ops[number], slot) for number, slot in stored.users]
        value.block_tensors = map_blocks(stored.block_tensors, graph.values.__getitem__)
        if stored.producer is not None:
            value.producer = Producer(graph.ops[stored.producer[0]], stored.producer[1])
    graph.inputs = [graph.values[number] for number in flat.inputs]
    graph.outputs = [graph.values[number] for number in flat.outputs]


def _restored_op(flat: FlatOp, graph: Graph, graphs: Sequence[Graph]) -> Op:
    op = flat.kind.restored(flat.attributes)
    for name, called in flat.calls.items():
        setattr(op, name, for_graphs(called, lambda c: graphs[c] if isinstance(c, int) else c))
    values = graph.values
    op.operands = tuple(None if number is None else values[number] for number in flat.operands)
    op.results = tuple(values[number] for number in flat.results)
    op.intermediates = tuple(values[number] for number in flat.intermediates)
    op.graph = graph
    return op
