"""UNPACK."""

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Unpack(Op, code=BuiltinOperator.UNPACK, options="UnpackOptions"):
    """One result for each of the ``num`` elements along an axis, which is gone from them."""

    value: Value = operand()

    num: int = attr(default=0)
    axis: int = attr(default=0)

    quant = Quant(result=Like("value"))
    variadic_results = True
    infer_dtype = dtype_of("value")

    def infer_shape(self, /) -> tuple[Shape, ...]:
        part = unpacked(self.value.shape, self.axis, self.num)
        return rules.parts(part, self.num, "num")


def unpacked(shape: Shape, place: int, count: int) -> Shape:
    """Compute the shape of each result. Raises ShapeError when the axis has not as many
    elements.
    """
    along = rules.axis(place, len(shape))
    n = shape[along]
    if count < 0 or n not in (None, count):
        raise ShapeError(f"num is {count}, axis {along} has {n} elements")
    return (*shape[:along], *shape[along + 1 :])
