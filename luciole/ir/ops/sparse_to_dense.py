"""SPARSE_TO_DENSE."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, product, rank, rank_of_file, unknown
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class SparseToDense(Op, code=BuiltinOperator.SPARSE_TO_DENSE, options="SparseToDenseOptions"):
    """``default_value`` everywhere but at the given coordinates.

    values[i], or the only value, comes to lie at indices[i]; of two at one place the last holds.
    ``validate_indices`` is for other runtimes: here indices are checked in any case.
    """

    indices: Value = operand(dtype=INDEX)
    output_shape: Value = operand(dtype=INDEX)
    values: Value = operand()
    default_value: Value = operand()

    validate_indices: bool = attr(default=False, dump="ValidateIndices")

    infer_dtype = dtype_of("values")

    def infer_shape(self, /) -> Shape:
        (axes,) = rank(self.output_shape, "output_shape", 1)
        agree("elements", product(self.default_value.shape), 1, "default_value", "a default")
        extents = known_ints(self.output_shape, "output_shape")
        if axes is None:
            return rank_of_file(self, "the number of extents in output_shape is not known")
        check_indices(self.indices.shape, self.values.shape, axes)
        if extents is not None and min(extents, default=0) < 0:
            raise ShapeError(f"output_shape is {list(extents)}, nothing below 0 is possible")
        return unknown(axes) if extents is None else extents


def check_indices(indices: Shape, values: Shape, axes: int) -> None:
    """Raise ShapeError unless indices is a place, a vector of places (for one axis), or a row of
    coordinates for each place, and values has one element for each of them or for all.
    """
    if len(indices) > 2 or len(values) > 1:
        raise ShapeError(
            f"indices is {shape_text(indices)} and values {shape_text(values)}, "
            "at most rows of coordinates and a vector are needed"
        )
    coordinates = indices[1] if len(indices) == 2 else 1
    agree("coordinates", coordinates, axes, "indices", "output_shape")
    if values:
        agree("elements", product(values), product(indices[:1]), "values", "indices")
