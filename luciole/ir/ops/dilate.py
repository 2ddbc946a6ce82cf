"""DILATE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, product, rank, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Dilate(Op, code=BuiltinOperator.DILATE, options="DilateOptions"):
    """With dilations[i] - 1 padding values between the elements along each axis i."""

    input: Value = operand()
    dilations: Value = operand(dtype=INDEX)
    padding_value: Value = operand()

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        (axes,) = rank(self.dilations, "dilations", 1)
        agree("axes", axes, len(self.input.shape), "dilations", "input")
        agree("elements", product(self.padding_value.shape), 1, "padding_value", "a padding value")
        numbers = known_ints(self.dilations, "dilations")
        shape = self.input.shape
        return unknown(len(shape)) if numbers is None else dilated(shape, numbers)


def dilated(shape: Shape, dilations: Sequence[int]) -> Shape:
    """Compute the result's shape. Raises ShapeError for a dilation below 1."""
    if min(dilations, default=1) < 1:
        raise ShapeError(f"dilations is {list(dilations)}, each must be at least 1")
    return tuple(n and (n - 1) * d + 1 for n, d in zip(shape, dilations, strict=True))
