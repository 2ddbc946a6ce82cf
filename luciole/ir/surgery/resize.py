"""Give inputs other shapes, and infer those of all that depends on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from luciole.ir.calls import merged
from luciole.ir.errors import GraphError, ShapeError
from luciole.ir.extents import check_shapes
from luciole.ir.graph import Graph, Model
from luciole.ir.infer import infer_op, open_ranks
from luciole.ir.names import main_tensor
from luciole.ir.op import Op
from luciole.ir.ops.control_flow import Calling
from luciole.ir.ops.reshape import Reshape
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Shape, Value, element_count, shape_text


def resize(model: Model, shapes: Mapping[str, Shape]) -> Model:
    """Copy a model with other shapes (None: an extent that is left open) for inputs by name, and
    with the shapes that follow for all that depends on them; what no rule knows is left open.

    Raises GraphError for a tensor that is no input, and ShapeError, naming the operator, for one
    that does not take the shapes or whose shapes nobody knows.
    """
    check_shapes(shapes)
    copy = model.clone()
    changed = {}
    for name, shape in shapes.items():
        value = main_tensor(copy.graph, name)
        if not value.is_input:
            raise GraphError(f"tensor {name!r} is no input: only inputs are given other shapes")
        if value.dims and shape == ():
            axes = f"it has {len(value.dims)} axes"
            raise ShapeError(f"input {name!r} cannot get the shape of a single number: {axes}")
        changed[value] = shape
    _infer(copy.graph, changed)
    return copy


def _infer(graph: Graph, shapes: Mapping[Value, Shape]) -> None:
    """Give a graph's inputs shapes, and infer those of all that depends on them."""
    before = {value: value.shape for value in graph.values}
    for value, shape in shapes.items():
        value.shape = shape
    depending = set(shapes)
    called: dict[Graph, list[Shape]] = {}
    with open_ranks(graph):
        for op in graph.ops:
            if depending.isdisjoint(op.operands):
                continue
            _refuse_unknown(op, depending)
            infer_op(op, declared=False)
            if isinstance(op, Reshape):
                _refuse_more_rows(op, before)
            depending.update(op.results)
            if isinstance(op, Calling):
                _note_called(op, called)
    for other, inner in called.items():
        _infer(other, dict(zip(other.inputs, inner, strict=True)))


def _refuse_unknown(op: Op, depending: Collection[Value]) -> None:
    """Refuse to resize what an operator without a rule for shapes depends on."""
    read = next(v for v in op.operands if v is not None and v in depending)
    if isinstance(op, UnknownOp):
        raise ShapeError(
            f"{op}: its rule for shapes is not known, so that its operand {read.name!r} "
            "cannot get another shape"
        )


def _refuse_more_rows(op: Reshape, before: Mapping[Value, Shape]) -> None:
    """Refuse a shape whose first extent, -1 as a rule, takes up what images have grown by: there
    would be several answers to a record.
    """
    rows = (op.tensor, op.output)
    first, last = (value.shape[:1] for value in rows)
    sizes = {_row_size(before[value]) for value in rows} - {None}
    if first != last and len({before[value][:1] for value in rows}) == 1 and len(sizes) < 2:
        raise ShapeError(
            f"{op}: it gives {shape_text(op.output.shape)} of {shape_text(op.tensor.shape)}, "
            "so that records would have several rows or share one"
        )


def _row_size(shape: Shape) -> int | None:
    """Count the elements of a row, None where an extent is unknown: of as many elements, tensors
    whose rows differ in size have different numbers of rows.
    """
    extents = tuple(extent for extent in shape[1:] if extent is not None)
    return element_count(extents) if len(extents) == len(shape[1:]) else None


def _note_called(op: Calling, called: dict[Graph, list[Shape]]) -> None:
    """Note the shapes that called graphs are given: of several calls those that hold for all."""
    shapes = [value.shape for value in op.passed]
    for graph in op.called_graphs():
        if len(graph.inputs) == len(shapes):
            before = called.get(graph, shapes)
            called[graph] = list(merged(before, shapes))
