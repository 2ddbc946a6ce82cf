"""Drop what no output depends on: operators, tensors, buffers."""

from __future__ import annotations

from luciole.ir.graph import Graph, Model
from luciole.ir.rewriting.edits import is_idle
from luciole.ir.value import Value


def remove_dead(graph: Graph) -> bool:
    """Operators and tensors that nothing uses -> nothing.

    Operators that may do more than compute stay: stateful ones, and those that write a variable. Of
    CUSTOM operators those go that old converters wrote: they compute.
    """
    before = (len(graph.ops), len(graph.values))
    for op in reversed(list(graph.ops)):
        if is_idle(op):
            graph.remove(op)
    remove_unused_values(graph)
    return before != (len(graph.ops), len(graph.values))


def remove_unused_values(graph: Graph) -> bool:
    """Remove tensors that nothing uses, computes or names."""
    kept = _spoken_of(graph)
    unused = [v for v in graph.values if v not in kept and not v.users and v.producer is None]
    for value in unused:
        graph.remove_value(value)
    return bool(unused)


def remove_dead_buffers(model: Model) -> bool:
    """Remove buffers that no tensor and no metadata uses; buffer 0 stays, files want it empty."""
    used = {id(v.buffer) for g in model.graphs for v in g.values}
    used |= {id(b) for _, b in model.metadata} | {id(b) for b in model.metadata_buffers}
    before = len(model.buffers)
    model.buffers = [b for i, b in enumerate(model.buffers) if i == 0 or id(b) in used]
    return len(model.buffers) != before


def _spoken_of(graph: Graph) -> set[Value]:
    """List tensors that are named from outside the operators' operands and results."""
    named = {*graph.inputs, *graph.outputs}
    named.update(v for value in graph.values for v in value.block_tensors if v is not None)
    for op in graph.ops:
        named.update(op.intermediates)
    for signature in graph.model.signatures if graph.model else ():
        if signature.graph is graph:
            named.update(value for _, value in (*signature.inputs, *signature.outputs))
    return named
