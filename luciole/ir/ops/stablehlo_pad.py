"""STABLEHLO_PAD."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, product
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class StablehloPad(Op, code=BuiltinOperator.STABLEHLO_PAD, options="StablehloPadOptions"):
    """With a value before, behind and between the elements of each axis.

    ``edge_padding_low`` and ``edge_padding_high`` may be negative: so many elements are taken off,
    once ``interior_padding`` stands between them.
    """

    input: Value = operand()
    padding_value: Value = operand()

    edge_padding_low: tuple[int, ...] = attr(default=())
    edge_padding_high: tuple[int, ...] = attr(default=())
    interior_padding: tuple[int, ...] = attr(default=())

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        agree("elements", product(self.padding_value.shape), 1, "padding_value", "a padding")
        return padded(
            self.input.shape, self.edge_padding_low, self.edge_padding_high, self.interior_padding
        )


def padded(shape: Shape, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Shape:
    """Compute the result's shape. Raises ShapeError for other numbers of axes, and where more is
    taken off than there is.
    """
    if not len(shape) == len(low) == len(high) == len(interior):
        raise ShapeError(
            f"paddings are for {len(low)}, {len(high)} and {len(interior)} axes, "
            f"input has {len(shape)}"
        )
    if min(interior, default=0) < 0:
        raise ShapeError(f"interior_padding is {min(interior)}, nothing below 0 is possible")
    return tuple(map(_extent, shape, low, high, interior))


def _extent(size: int | None, low: int, high: int, interior: int) -> int | None:
    if size is None:
        return None
    extent = low + spread(size, interior) + high
    if extent < 0:
        raise ShapeError(f"{-low - high} elements are taken off {spread(size, interior)}")
    return extent


def spread(size: int, interior: int) -> int:
    """Count the elements of an axis once there is padding between them."""
    return size + max(size - 1, 0) * interior
