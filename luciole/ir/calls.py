"""Graphs that operators call: which they are, and the shapes of what they return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from luciole.ir.dtypes import Array
from luciole.ir.errors import GraphError, ShapeError
from luciole.ir.graph import Graph
from luciole.ir.infer import infer_op
from luciole.ir.value import UNRANKED, Shape, Value

MOST_OPERATORS = 100_000
"""Operators that a graph may unfold to when every call is replaced by the graph that it calls."""

DEEPEST = 32
"""Graphs that may call each other in a row: inferring and running them nests as deeply."""

MOST_INFERRED = 300_000
"""Operators and arguments whose shapes are inferred for the calls of one model: loops in loops go
round again for all that those around them try.
"""


class Call(NamedTuple):
    """A request to run another graph of the model: the arrays that its inputs become."""

    graph: Graph
    arguments: tuple[Array, ...]


class Extent(NamedTuple):
    """Size of a graph with its calls: operators in all, and graphs that call each other in a
    row.
    """

    operators: int
    depth: int


def reachable(graph: Graph) -> list[Graph]:
    """List a graph and all that it calls, directly or not, each once.

    Raises GraphError as ``check_calls`` does.
    """
    graphs: list[Graph] = []
    _visit(graph, (), {}, graphs)
    return graphs


def check_calls(graph: Graph, known: dict[Graph, Extent]) -> None:
    """Raise GraphError for graphs that call themselves, for calls of calls that would unfold to
    more than ``MOST_OPERATORS``, and for more than ``DEEPEST`` graphs in a row.

    ``known`` are the graphs that were found to be sound before; it grows.
    """
    _visit(graph, (), known, [])


def _visit(
    graph: Graph, path: tuple[Graph, ...], known: dict[Graph, Extent], graphs: list[Graph]
) -> Extent:
    """Count a graph's operators with its calls; add it, and the graphs that it calls, to
    ``graphs``.
    """
    if graph in path:
        raise GraphError(f"graph {graph.name!r} calls itself")
    if graph in known:
        return known[graph]
    path = (*path, graph)
    _check_depth(path[0], len(path))
    graphs.append(graph)
    operators, depth = len(graph.ops), 1
    for op in graph.ops:
        for called in op.called_graphs():
            extent = _visit(called, path, known, graphs)
            if extent.operators > MOST_OPERATORS:
                raise GraphError(
                    f"graph {called.name!r} unfolds to {extent.operators} operators by calling "
                    "others"
                )
            operators += extent.operators
            depth = max(depth, 1 + extent.depth)
    _check_depth(graph, depth)
    known[graph] = Extent(operators, depth)
    return known[graph]


def _check_depth(graph: Graph, depth: int) -> None:
    if depth > DEEPEST:
        raise GraphError(f"graph {graph.name!r} calls more than {DEEPEST - 1} others in a row")


class _Inference:
    """Results of called graphs, by the shapes of their arguments."""

    def __init__(self) -> None:
        self._left = MOST_INFERRED
        self._copies: dict[Graph, Graph] = {}
        self._found: dict[tuple[Graph, tuple[Shape, ...]], tuple[Shape, ...]] = {}

    def result_shapes(self, graph: Graph, arguments: tuple[Shape, ...]) -> tuple[Shape, ...]:
        self._spend(graph, len(arguments) + 1)
        key = graph, arguments
        if key not in self._found:
            self._spend(graph, len(graph.ops))
            self._found[key] = self._inferred(graph, arguments)
        return self._found[key]

    def _spend(self, graph: Graph, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ShapeError(
                f"graph {graph.name!r} is called with too many different shapes, by loops in loops"
            )

    def _inferred(self, graph: Graph, arguments: tuple[Shape, ...]) -> tuple[Shape, ...]:
        if graph not in self._copies:
            self._copies[graph] = graph.clone()[0]
        copy = self._copies[graph]
        for value, shape in zip(copy.inputs, arguments, strict=True):
            value.shape = shape
        for op in copy.ops:
            infer_op(op, declared=False)
        return tuple(value.shape for value in copy.outputs)


_CURRENT: ContextVar[_Inference | None] = ContextVar("what called graphs return", default=None)


@contextmanager
def remembered() -> Iterator[None]:
    """Infer each call of a graph with certain shapes only once inside, and all of them within
    ``MOST_INFERRED``. Graphs that are called must stay as they are meanwhile.
    """
    token = _CURRENT.set(_CURRENT.get() or _Inference())
    try:
        yield
    finally:
        _CURRENT.reset(token)


def result_shapes(graph: Graph, arguments: Sequence[Shape]) -> tuple[Shape, ...]:
    """Infer the shapes of a graph's outputs when its inputs have the given ones.

    Raises ShapeError when they do not fit together, and where calls in calls take too long.
    """
    if len(arguments) != len(graph.inputs):
        raise ShapeError(
            f"{len(arguments)} operands, graph {graph.name!r} takes {len(graph.inputs)}"
        )
    with remembered():
        current = _CURRENT.get()
        assert current is not None
        return current.result_shapes(graph, tuple(arguments))


def merged(first: Sequence[Shape], second: Sequence[Shape]) -> tuple[Shape, ...]:
    """Find shapes that hold whichever of two graphs ran: extents or ranks in which they differ are
    unknown.
    """
    return tuple(_merged(a, b) for a, b in zip(first, second, strict=True))


def _merged(a: Shape, b: Shape) -> Shape:
    if a is UNRANKED or b is UNRANKED or len(a) != len(b):
        return UNRANKED
    return tuple(m if m == n else None for m, n in zip(a, b, strict=True))


def mismatches(
    values: Sequence[Value | None], others: Sequence[Value], what: str, graph: Graph
) -> Iterator[str]:
    """List, in a sentence each, the values that cannot stand for a called graph's inputs or
    outputs.
    """
    if len(values) != len(others):
        yield f"{len(values)} {what}, graph {graph.name!r} has {len(others)}"
        return
    for value, other in zip(values, others, strict=True):
        if value is not None and value.dtype != other.dtype:
            yield (
                f"{value.name!r} is {value.dtype.name}, {other.name!r} of graph {graph.name!r} "
                f"is {other.dtype.name}"
            )
