"""Make a model of some of a model's operators."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from luciole.ir.calls import reachable
from luciole.ir.equalization import forget_missing
from luciole.ir.graph import Graph, Model, Signature
from luciole.ir.op import Op
from luciole.ir.passes.cleaning.remove_dead import remove_dead_buffers, remove_unused_values
from luciole.ir.surgery.regions import Ends
from luciole.ir.value import Producer, Value

_OF_ENDS = ("TFLITE_METADATA",)
"""Metadata that describes inputs and outputs by their places."""


def part_of(model: Model, ops: Collection[Op], ends: Ends, *, alone: bool = True) -> Model:
    """Copy a model with these of the main graph's operators alone, which take and give the tensors
    of ``ends``. Names, quantization and metadata stay; a signature of the main graph names the new
    ends. Only the graphs that it calls stay where it is ``alone``, else those of other signatures,
    too.
    """
    copy = model.clone()
    graph = copy.graph
    inputs, outputs = (_twins(model.graph, graph, side) for side in ends)
    kept = {number for number, op in enumerate(model.graph.ops) if op in ops}
    for op in [op for number, op in enumerate(graph.ops) if number not in kept]:
        _take_out(graph, op)
    for value in inputs:
        _free(graph, value)
    changed = (inputs, outputs) != (graph.inputs, graph.outputs)
    graph.inputs, graph.outputs = inputs, outputs
    _sign(copy, alone)
    _drop_unused(copy, changed)
    return copy


def _twins(graph: Graph, copy: Graph, values: Sequence[Value]) -> list[Value]:
    places = {value: place for place, value in enumerate(graph.values)}
    return [copy.values[places[value]] for value in values]


def _take_out(graph: Graph, op: Op) -> None:
    """Remove an operator; its results stay as tensors that nothing computes."""
    for value in op.results:
        value.producer = None
    op.results, op.intermediates = (), ()
    graph.remove(op)


def _free(graph: Graph, value: Value) -> None:
    """Make nothing compute a tensor: an operator that is needed for others of its results gets
    another tensor in its place.
    """
    if value.producer is None:
        return
    op, slot = value.producer
    other = graph.add_value(value.clone())
    other.name = graph.unique_name(f"{value.name}/unused")
    other.producer, value.producer = Producer(op, slot), None
    op.results = tuple(other if v is value else v for v in op.results)


def _sign(model: Model, alone: bool) -> None:
    """Give the main graph's signatures the new ends, by the names that they had for them, or by the
    tensors' own.
    """
    graph = model.graph
    for signature in model.signatures:
        if signature.graph is graph:
            signature.inputs = _named(graph.inputs, signature.inputs)
            signature.outputs = _named(graph.outputs, signature.outputs)
    if alone:
        model.signatures = [s for s in model.signatures if s.graph is graph]
    called = {g for start in (graph, *_graphs(model.signatures)) for g in reachable(start)}
    model.graphs = [g for g in model.graphs if g in called]


def _graphs(signatures: Sequence[Signature]) -> list[Graph]:
    return [signature.graph for signature in signatures]


def _named(values: Sequence[Value], pairs: Sequence[tuple[str, Value]]) -> list[tuple[str, Value]]:
    known = {value: name for name, value in reversed(pairs)}
    return [(known.get(value, value.name), value) for value in values]


def _drop_unused(model: Model, changed: bool) -> None:
    """Remove tensors, buffers and notes that are of nothing any more."""
    while remove_unused_values(model.graph):
        pass  # scales of blocks go behind the tensors that they are of
    if changed:
        model.metadata = [entry for entry in model.metadata if entry[0] not in _OF_ENDS]
    forget_missing(model)
    remove_dead_buffers(model)
