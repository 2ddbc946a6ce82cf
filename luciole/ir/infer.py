"""Infer the shapes of an operator's results from shapes of its operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from luciole.ir.errors import ShapeError
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.stored import unstorable
from luciole.ir.value import UNRANKED, Shape, Value


def infer_op(op: Op, *, declared: bool) -> bool:
    """Infer one operator's shapes; ``declared`` lets known extents of the file stand where the rule
    knows none. Raises ShapeError, naming the operator, when operands do not fit together, for
    another number of results, and for attributes that are of another type.
    """
    for sentence in unstorable(op):
        raise ShapeError(f"{op}: {sentence}")
    before, shapes = [value.shape for value in op.results], op.result_shapes()
    if len(shapes) != len(before):
        raise ShapeError(f"{op}: {len(shapes)} results are computed, it has {len(before)}")
    for value, shape in zip(op.results, shapes, strict=True):
        refined = _refined(shape, value) if declared else shape
        if refined != value.shape:  # setting it anew would forget the file's extents of open axes
            value.shape = refined
    return before != [value.shape for value in op.results]


@contextmanager
def shapes_given(shapes: Mapping[Value, Shape]) -> Iterator[None]:
    """Give tensors other shapes inside, whatever the graph has for them."""
    before = {v: (v.dims, v.shape_signature, v.is_unranked) for v in shapes}
    try:
        for value, shape in shapes.items():
            value.shape = shape
        yield
    finally:
        for value, kept in before.items():
            value.dims, value.shape_signature, value.is_unranked = kept


@contextmanager
def open_ranks(graph: Graph) -> Iterator[None]:
    """Leave inputs without a rank inside where the file gives none, and tensors to which inference
    gives none; afterwards they are scalars again, as in files.
    """
    said = {v: (v.dims, v.shape_signature) for v in graph.values if v.has_open_rank}
    try:
        for value in said.keys() & set(graph.inputs):
            value.shape = UNRANKED
        yield
    finally:
        for value, before in said.items():
            if value.is_unranked:
                value.dims, value.shape_signature, value.is_unranked = *before, False


def _refined(shape: Shape, value: Value) -> Shape:
    if shape is UNRANKED:
        return shape if value.has_open_rank else value.shape
    if value.shape is UNRANKED or len(shape) != len(value.shape):
        return shape
    return tuple(old if new is None else new for new, old in zip(shape, value.shape, strict=True))
