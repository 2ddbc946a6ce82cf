"""RESHAPE."""

from luciole.ir.errors import ShapeError
from luciole.ir.op import INDEX, Op, attr, dtype_of, operand
from luciole.ir.rules import known_ints, product, unknown
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class Reshape(Op, code=BuiltinOperator.RESHAPE, options="ReshapeOptions"):
    """The same elements in another shape; one extent of -1 takes what is left.

    The shape comes from the second operand where there is one, else from ``new_shape``.
    """

    tensor: Value = operand()
    shape: Value | None = operand(default=None, dtype=INDEX)

    new_shape: tuple[int, ...] = attr(default=())

    infer_dtype = dtype_of("tensor")

    def infer_shape(self, /) -> Shape:
        wanted = self.new_shape if self.shape is None else known_ints(self.shape, "shape")
        if wanted is None and self.shape is not None:
            extent = self.shape.shape[0] if self.shape.shape else None
            return unknown(extent or 0) if extent is not None or not self.results else self.output.shape
        return _resolve(self.tensor.shape, tuple(wanted or ()))


def _resolve(shape: Shape, wanted: tuple[int, ...]) -> Shape:
    """The wanted shape with its -1 replaced."""
    if any(n < -1 for n in wanted) or wanted.count(-1) > 1:
        raise ShapeError(f"the new shape is {list(wanted)}: extents are 0 or more, one may be -1")
    count, rest = product(shape), product(n for n in wanted if n != -1) or 0
    if count is None:
        return tuple(None if n == -1 else n for n in wanted)
    fits = count == rest if -1 not in wanted else rest > 0 and count % rest == 0
    if not fits and not (count == 0 and -1 in wanted):
        raise ShapeError(f"{shape_text(shape)} does not reshape to {list(wanted)}")
    return tuple((count // rest if rest else 0) if n == -1 else n for n in wanted)
