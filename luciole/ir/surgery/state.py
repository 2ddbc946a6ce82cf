"""State that outlives a run, which no cut may go through: variables and tables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator

from luciole.ir.calls import reachable
from luciole.ir.errors import GraphError
from luciole.ir.graph import Graph, Model, all_ops
from luciole.ir.op import Op
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.value import Value
from luciole.schema.enums import TensorType

State = Hashable
"""A variable tensor, or how a handle names what it is of."""


def states_of(op: Op) -> set[State]:
    """List the states that an operator, or a graph that it calls, reads or writes."""
    return {state for each in (op, *_inside(op)) for state in _own(each)}


def _inside(op: Op) -> Iterator[Op]:
    """List the operators of the graphs that an operator calls, directly or not."""
    return (inner for g in op.called_graphs() for graph in reachable(g) for inner in graph.ops)


def _own(op: Op) -> Iterator[State]:
    for value in op.operands:
        if value is not None and value.is_variable:
            yield value
        elif value is not None and value.dtype == TensorType.RESOURCE:
            yield _named(value)


def _named(handle: Value) -> State:
    """Name a variable or table by the attributes of its handle's maker, which others may share."""
    if handle.producer is None:
        return handle
    maker = handle.producer.op
    return maker.kind, *(str(held) for held in maker.attributes().values())


def all_states(ops: Iterable[Op]) -> set[State]:
    """List the states of several operators."""
    return {state for op in ops for state in states_of(op)}


def set_up(graph: Graph, ops: Collection[Op]) -> set[Op]:
    """Find the operators that set up, once, the states of others."""
    states = all_states(ops)
    return {op for op in graph.ops if isinstance(op, CallOnce) and states_of(op) & states}


def writers(graph: Graph, ops: Collection[Op]) -> set[Op]:
    """Find the operators without results that share states with others: they write them."""
    states = all_states(ops)
    return {op for op in graph.ops if not op.results and states_of(op) & states}


def refuse_split_state(model: Model, ops: Collection[Op], *, alone: bool = True) -> None:
    """Refuse to part operators of the main graph from others that share a state with them: of the
    whole model, or where they do not stay ``alone``, of the main graph. Raises GraphError.
    """
    states = all_states(ops)
    own = {*ops, *(inner for op in ops for inner in _inside(op))}
    others = all_ops(model.graphs) if alone else model.graph.ops
    for other in others if states else ():
        if other not in own and states_of(other) & states:
            first = next(op for op in ops if states_of(op) & states_of(other))
            raise GraphError(
                f"{first} and {other} share a variable or a table, whose state is not split: "
                "both go into one part"
            )
