"""SELECT and SELECT_V2: elements of one tensor or of another."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Like, Quant
from luciole.ir.rules import agree, broadcast, by_axis, same_extent
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator, TensorType

TRUTH = (TensorType.BOOL,)


class Choice(Op):
    """Base of both: ``t`` where the condition is true, else ``e``."""

    condition: Value = operand(dtype=TRUTH)
    t: Value = operand()
    e: Value = operand()

    quant = Quant(result=Like("t", "e"), since=SECOND)
    infer_dtype = dtype_of("t")

    def verify(self, /) -> Iterator[str]:
        if self.t.dtype != self.e.dtype:
            yield f"t is {self.t.dtype.name} and e is {self.e.dtype.name}; both must have one type"


class Select(Choice, code=BuiltinOperator.SELECT, options="SelectOptions"):
    """Elements of t where the condition is true, else of e, which has the same shape.

    The condition has it too, or is one for all, or one for each element of the first axis.
    """

    def infer_shape(self, /) -> Shape:
        return chosen(self.condition.shape, self.t.shape, self.e.shape)


class SelectV2(Choice, code=BuiltinOperator.SELECT_V2, options="SelectV2Options"):
    """Elements of t where the condition is true, else of e; all are stretched to one shape."""

    def infer_shape(self, /) -> Shape:
        return broadcast(self.condition.shape, self.t.shape, self.e.shape)


def chosen(condition: Shape, t: Shape, e: Shape) -> Shape:
    """Infer the shape of SELECT's result. Raises ShapeError when the shapes do not fit."""
    shape = tuple(same_extent(axis, each) for axis, each in enumerate(by_axis([t, e])))
    if len(condition) not in (0, 1, len(shape)) or (condition and not shape):
        raise ShapeError(
            f"the condition is {shape_text(condition)}, it speaks of elements {shape_text(shape)}"
        )
    for axis, (own, other) in enumerate(zip(condition, shape, strict=False)):
        agree(f"axis {axis}", own, other, "the condition", "t")
    return shape
