"""REVERSE_V2."""

from collections.abc import Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class ReverseV2(Op, code=BuiltinOperator.REVERSE_V2, options="ReverseV2Options"):
    """The last element first, along each of the given axes; negative ones count from the end."""

    tensor: Value = operand()
    axis: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("tensor"))
    infer_dtype = dtype_of("tensor")

    def infer_shape(self, /) -> Shape:
        rules.rank(self.axis, "axis", 1)
        numbers = rules.known_ints(self.axis, "axis")
        if numbers is not None:
            turned(numbers, len(self.tensor.shape))
        return self.tensor.shape


def turned(numbers: Sequence[int], rank: int) -> tuple[int, ...]:
    """Count the axes from the front. Raises ShapeError for one that is not there or repeated."""
    axes = rules.axes(numbers, rank)
    if len(axes) != len(numbers):
        raise ShapeError(f"axis is {list(numbers)}: an axis of {rank} is given twice")
    return axes
