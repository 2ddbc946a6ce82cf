"""Put operators behind a tensor, in front of everything that reads it."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.ir import Graph, Op, Value
from luciole.ir.value import Use


def insert_at(graph: Graph, place: int, op: Op, name: str) -> None:
    """Insert an operator at a place in execution order; its result gets a name like that."""
    if place < len(graph.ops):
        graph.insert_before(graph.ops[place], op, graph.unique_name(name))
    else:
        graph.append(op, graph.unique_name(name))


def behind(graph: Graph, value: Value) -> int:
    """Find the first place at which a tensor can be read."""
    return 0 if value.producer is None else graph.ops.index(value.producer.op) + 1


def read_instead(graph: Graph, users: Sequence[Use], value: Value, new: Value, name: str) -> None:
    """Replace a tensor by another one in its ``users``, and in the graph where it is a result. The
    graph's result keeps its name: the old tensor gets ``name``.
    """
    for op, slot in users:
        op.set_operand(slot, new)
    if not value.is_output:
        return
    graph.outputs = [new if v is value else v for v in graph.outputs]
    graph.rename_in_signatures(value, new)
    if not value.is_input:
        kept, value.name = value.name, graph.unique_name(name)
        new.name = kept
