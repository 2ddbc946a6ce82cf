"""TOPK_V2."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import known_ints
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class TopkV2(Op, code=BuiltinOperator.TOPK_V2, options="TopKV2Options"):
    """The k largest elements along the last axis, from large to small, and their places, INT32.

    Of equal ones the first comes first.
    """

    input: Value = operand()
    k: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    result_names = ("values", "indices")

    def infer_dtype(self, /) -> tuple[TensorType, TensorType]:
        return self.input.dtype, TensorType.INT32

    def infer_shape(self, /) -> tuple[Shape, Shape]:
        best = (*self.input.shape[:-1], most(self.input.shape, known_ints(self.k, "k", 1)))
        return best, best


def most(shape: Shape, k: Sequence[int] | None) -> int | None:
    """Read how many elements are wanted. Raises ShapeError when there are not as many."""
    if not shape:
        raise ShapeError("input is a scalar, at least one axis is needed")
    if k is None:
        return None
    if k[0] < 0 or (shape[-1] is not None and k[0] > shape[-1]):
        raise ShapeError(f"k is {k[0]}, the last axis has {shape[-1]} elements")
    return k[0]
