"""Put graphs in the place of operators that do nothing but call them."""

from __future__ import annotations

from collections.abc import MutableMapping

from luciole.ir.calls import check_calls
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.control_flow import Delegating
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.value import Value, map_blocks


@graph_pass(on_request=True)
def inline_calls(graph: Graph, sources: MutableMapping[Op, Op] | None = None) -> bool:
    """CALL, STABLEHLO_COMPOSITE -> the operators of the graphs that they call.

    Left are calls of graphs that keep variables, which all calls share, and of those that return
    what no operator of theirs computes. ``sources`` are told what new operators stand for: what
    the call did. Raises GraphError for graphs that call themselves.
    """
    check_calls(graph, {})
    calls = [op for op in graph.ops if _may_be_inlined(op)]
    changed = bool(calls)
    while calls:
        op = calls.pop()
        assert isinstance(op, Delegating)  # no other may be
        new = _inlined(graph, op)
        if sources is not None:
            sources.update(dict.fromkeys(new, sources.pop(op)))
        calls += [inner for inner in new if _may_be_inlined(inner)]
    return changed


def _may_be_inlined(op: Op) -> bool:
    called = op.called_graphs() if isinstance(op, Delegating) else ()
    if not called or None in op.operands:
        return False
    (graph,) = called
    sides = ((graph.inputs, op.operands), (graph.outputs, op.results))
    fits = all(len(set(inner)) == len(inner) == len(outer) for inner, outer in sides)
    computed = all(value.producer is not None for value in graph.outputs)
    return fits and computed and not any(value.is_variable for value in graph.values)


def _inlined(graph: Graph, op: Delegating) -> list[Op]:
    """Copy the called graph's operators to the place of the call, whose results they compute."""
    called = op.whole
    known = dict(zip((*called.inputs, *called.outputs), (*op.operands, *op.results), strict=True))
    for value in op.results:
        value.producer = None
    op.results, new = (), []
    for inner in called.ops:
        operands = [None if v is None else _copied(v, graph, known) for v in inner.operands]
        twin = inner.clone(operands)
        twin.intermediates = tuple(_copied(v, graph, known) for v in inner.intermediates)
        results = [_copied(v, graph, known) for v in inner.results]
        new.append(graph.insert_before(op, twin, results=results))
    graph.remove(op)
    return new


def _copied(value: Value, graph: Graph, known: dict[Value, Value | None]) -> Value:
    """Return the copy of a tensor of the called graph."""
    copy = known.get(value)
    if copy is None:
        copy = known[value] = graph.add_value(value.clone())
        copy.block_tensors = map_blocks(value.block_tensors, lambda v: _copied(v, graph, known))
    return copy
