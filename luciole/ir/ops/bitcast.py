"""BITCAST."""

from luciole.ir.dtypes import NUMPY
from luciole.ir.errors import ShapeError
from luciole.ir.fields import operand
from luciole.ir.op import Op
from luciole.ir.rules import agree
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Bitcast(Op, code=BuiltinOperator.BITCAST, options="BitcastOptions"):
    """The same bytes as elements of another type: that of the result.

    Elements that are k times as wide take k of the operand's each, which are its last axis; for
    narrower ones such an axis is added.
    """

    x: Value = operand()

    def infer_dtype(self, /) -> TensorType:
        if not self.results:
            raise ShapeError("the type to cast to is known only from a result")
        return self.output.dtype

    def infer_shape(self, /) -> Shape:
        return recast(self.x.shape, self.x.dtype, self.infer_dtype())


def recast(shape: Shape, before: TensorType, after: TensorType) -> Shape:
    """Compute the shape of the same bytes in another type. Raises ShapeError when they do not
    divide.
    """
    for dtype in (before, after):
        if dtype not in NUMPY:
            raise ShapeError(f"elements of {dtype.name} have no bytes of their own")
    old, new = NUMPY[before].itemsize, NUMPY[after].itemsize
    if old == new:
        return shape
    if old > new:
        return (*shape, old // new)
    if not shape:
        raise ShapeError(f"one {before.name} does not make a {after.name}")
    agree("elements", shape[-1], new // old, "the last axis of x", after.name)
    return shape[:-1]
