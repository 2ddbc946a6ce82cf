"""Find tensors and graphs that a model names and does not hold: edits have left them behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from luciole.ir.findings import Finding, Severity
from luciole.ir.graph import Graph, Model, Signature
from luciole.ir.op import Op
from luciole.ir.value import Value


def broken_links(model: Model) -> Iterator[Finding]:
    """List tensors that are not of the graph whose operators, ends or signatures speak of them, or
    twice in it, and graphs that are not of the model.
    """
    graphs = frozenset(model.graphs)
    for index, graph in enumerate(model.graphs):
        yield from _of_graph(graph, graphs, f"subgraphs[{index}]")
    for index, signature in enumerate(model.signatures):
        yield from _of_signature(signature, graphs, f"signature_defs[{index}] {signature.key!r}")


def _of_graph(graph: Graph, graphs: frozenset[Graph], path: str) -> Iterator[Finding]:
    own = frozenset(graph.values)
    if len(own) < len(graph.values):
        yield _error(path, "a tensor is in it twice")
    yield from _strangers((*graph.inputs, *graph.outputs), own, path)
    for value in graph.values:
        yield from _strangers(value.block_tensors, own, path)
    for index, op in enumerate(graph.ops):
        here = f"{path}.operators[{index}]"
        yield from _strangers((*op.operands, *op.results, *op.intermediates), own, here)
        yield from _called(op, graphs, here)


def _called(op: Op, graphs: frozenset[Graph], path: str) -> Iterator[Finding]:
    if not graphs.issuperset(op.called_graphs()):
        yield _error(path, f"{op} calls what is no graph of the model")


def _of_signature(signature: Signature, graphs: frozenset[Graph], path: str) -> Iterator[Finding]:
    if signature.graph not in graphs:
        yield _error(path, "its graph is not of the model")
        return
    named = [value for _, value in (*signature.inputs, *signature.outputs)]
    yield from _strangers(named, frozenset(signature.graph.values), path)


def _strangers(
    values: Iterable[Value | None], own: frozenset[Value], path: str
) -> Iterator[Finding]:
    for value in values:
        if value is not None and value not in own:
            yield _error(path, f"tensor {value.name!r} is not of the graph")


def _error(path: str, sentence: str) -> Finding:
    return Finding(Severity.ERROR, "REFERENCE", path, sentence)
