"""RESHAPE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Like, Quant
from luciole.ir.rules import Ints, PartialInts, known_ints, product, rank_of_file, unknown
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class Reshape(Op, code=BuiltinOperator.RESHAPE, options="ReshapeOptions"):
    """The same elements in another shape; one extent of -1 takes what is left.

    The shape comes from the second operand where that is a vector, else (as in TFLite) from
    ``new_shape``, which old files set to [0] for a scalar.
    """

    tensor: Value = operand()
    shape: Value | None = operand(default=None, dtype=INDEX)

    new_shape: tuple[int, ...] = attr(default=(), dump="NewShape")

    quant = Quant(result=Like("tensor"), since=FIRST)
    reshapes = True
    infer_dtype = dtype_of("tensor")

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        return known(self.tensor) if len(self.output.shape) < 2 else None

    def infer_shape(self, /) -> Shape:
        if self.shape is None or len(self.shape.shape) != 1:
            return reshaped(self.tensor.shape, attribute_shape(self))
        target = known_ints(self.shape, "shape")
        if target is not None:
            return reshaped(self.tensor.shape, target)
        partly = PartialInts()(self.shape)
        if partly is not None:
            return partly_reshaped(self.tensor.shape, partly)
        extent = product(self.shape.shape)
        if extent is None:
            return rank_of_file(
                self, "the rank of the result is unknown: so is the length of shape"
            )
        return unknown(extent)


def partly_reshaped(shape: Shape, target: Ints) -> Shape:
    """Return the target shape as far as it is known. Raises ShapeError for extents that there are
    not.
    """
    if any(n is not None and n < -1 for n in target):
        raise ShapeError(f"the new shape is {shape_text(target)}: extents are 0 or more, or -1")
    open_ = [place for place, n in enumerate(target) if n in (None, -1)]
    count, rest = product(shape), product(n for n in target if n not in (None, -1))
    if len(open_) == 1 and count is not None and rest:
        return tuple(count // rest if n in (None, -1) else n for n in target)
    return tuple(None if n == -1 else n for n in target)


def attribute_shape(op: Reshape) -> tuple[int, ...]:
    """Read the shape wanted by an operator that has no vector of extents as operand."""
    return () if tuple(op.new_shape) == (0,) else tuple(op.new_shape)


def reshaped(shape: Shape, target: Sequence[int]) -> Shape:
    """Return the target shape with its -1 replaced. Raises ShapeError when the elements do not
    fit.
    """
    if any(n < -1 for n in target) or list(target).count(-1) > 1:
        raise ShapeError(
            f"the new shape is {list(target)}: extents are 0 or more, one of them may be -1"
        )
    count = product(shape)
    if count is None:
        return tuple(None if n == -1 else n for n in target)
    left = _left(shape, target) if -1 in target else None
    result = tuple(left if n == -1 else n for n in target)
    if product(result) != count:
        raise ShapeError(f"{shape_text(shape)} does not reshape to {list(target)}")
    return result


def _left(shape: Shape, target: Sequence[int]) -> int:
    """Compute the extent that -1 stands for. Where the new shape has a 0, zeros do not count, as in
    TFLite.
    """
    count = product(n for n in shape if n or 0 not in target) or 0
    return count // (product(n for n in target if n > 0) or 1)
