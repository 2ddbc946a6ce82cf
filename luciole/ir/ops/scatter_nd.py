"""SCATTER_ND."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.gather_nd import left
from luciole.ir.rules import agree, known_ints, rank, rank_of_file, unknown
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class ScatterNd(Op, code=BuiltinOperator.SCATTER_ND, options="ScatterNdOptions"):
    """Zeros of the given shape, to which updates[i, ..] is added at the coordinates indices[i]."""

    indices: Value = operand(dtype=INDEX)
    updates: Value = operand()
    shape: Value = operand(dtype=INDEX)

    infer_dtype = dtype_of("updates")

    def infer_shape(self, /) -> Shape:
        (axes,) = rank(self.shape, "shape", 1)
        extents = known_ints(self.shape, "shape")
        if extents is not None:
            check_updates(self.indices.shape, self.updates.shape, extents)
            return extents
        if axes is None:
            return rank_of_file(self, "the number of extents in shape is not known")
        return unknown(axes)


def check_updates(indices: Shape, updates: Shape, shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless there is an update for each row of indices."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"shape is {list(shape)}, nothing below 0 is possible")
    if not indices:
        raise ShapeError("indices is a scalar, an axis of coordinates is needed")
    if indices[-1] is None:
        return
    needed = (*indices[:-1], *left(shape, indices[-1], "the result"))
    if len(updates) != len(needed):
        raise ShapeError(f"updates has shape {shape_text(updates)}, {shape_text(needed)} is needed")
    for axis, (n, m) in enumerate(zip(updates, needed, strict=True)):
        agree(f"axis {axis}", n, m, "updates", "what indices and shape ask for")
