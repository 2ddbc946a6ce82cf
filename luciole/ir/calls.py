"""Graphs that operators call: which they are, and the shapes of what they return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from luciole.ir.errors import GraphError, ShapeError
from luciole.ir.graph import Graph
from luciole.ir.passes.infer_shapes import infer_op
from luciole.ir.value import Shape, Value, shape_text

MOST_OPERATORS = 100_000
"""Operators that a graph may unfold to when every call is replaced by the graph that it calls."""


class Call(NamedTuple):
    """A request to run another graph of the model: the arrays or values that its inputs become."""

    graph: Graph
    arguments: tuple[object, ...]


def reachable(graph: Graph) -> list[Graph]:
    """The graph and all that it calls, directly or not, each once.

    Raises GraphError for graphs that call themselves, and for calls of calls that would unfold to
    more than ``MOST_OPERATORS``.
    """
    sizes: dict[Graph, int] = {}
    found: list[Graph] = []
    _visit(graph, (), sizes, found)
    return found


def _visit(
    graph: Graph, path: tuple[Graph, ...], sizes: dict[Graph, int], found: list[Graph]
) -> int:
    """Operators that a graph unfolds to; adds it, and what it calls, to ``found``."""
    if graph in path:
        raise GraphError(f"graph {graph.name!r} calls itself")
    if graph in sizes:
        return sizes[graph]
    found.append(graph)
    size = len(graph.ops)
    for op in graph.ops:
        for called in op.called_graphs():
            size += _visit(called, (*path, graph), sizes, found)
    if path and size > MOST_OPERATORS:
        raise GraphError(f"graph {graph.name!r} unfolds to {size} operators by calling others")
    sizes[graph] = size
    return size


def result_shapes(graph: Graph, arguments: Sequence[Shape]) -> tuple[Shape, ...]:
    """The shapes of a graph's outputs when its inputs have the given ones.

    Raises ShapeError when they do not fit together.
    """
    copy, _ = graph.clone()
    if len(arguments) != len(copy.inputs):
        raise ShapeError(
            f"{len(arguments)} operands, graph {graph.name!r} takes {len(copy.inputs)}"
        )
    for value, shape in zip(copy.inputs, arguments, strict=True):
        value.shape = shape
    for op in copy.ops:
        infer_op(op, declared=False)
    return tuple(value.shape for value in copy.outputs)


def merged(first: Sequence[Shape], second: Sequence[Shape]) -> tuple[Shape, ...]:
    """Shapes that hold whichever of two graphs ran: extents in which they differ are unknown.

    Raises ShapeError where ranks differ.
    """
    return tuple(_merged(a, b) for a, b in zip(first, second, strict=True))


def _merged(a: Shape, b: Shape) -> Shape:
    if len(a) != len(b):
        raise ShapeError(f"a result is {shape_text(a)} or {shape_text(b)}: their ranks differ")
    return tuple(m if m == n else None for m, n in zip(a, b, strict=True))


def mismatches(
    values: Sequence[Value | None], others: Sequence[Value], what: str, graph: Graph
) -> Iterator[str]:
    """A sentence where values cannot stand for a called graph's inputs or outputs."""
    if len(values) != len(others):
        yield f"{len(values)} {what}, graph {graph.name!r} has {len(others)}"
        return
    for value, other in zip(values, others, strict=True):
        if value is not None and value.dtype != other.dtype:
            yield (
                f"{value.name!r} is {value.dtype.name}, {other.name!r} of graph {graph.name!r} "
                f"is {other.dtype.name}"
            )
