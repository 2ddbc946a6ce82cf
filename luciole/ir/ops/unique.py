"""UNIQUE."""

from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Unique(Op, code=BuiltinOperator.UNIQUE, options="UniqueOptions"):
    """The different elements of a vector as they come, and which of them each element is."""

    input: Value = operand()

    idx_out_type: TensorType = attr(default=TensorType.INT32, dump="idx_out_type")

    result_names = ("output", "idx")

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return (self.input.dtype, self.idx_out_type)

    def infer_shape(self, /) -> tuple[Shape, ...]:
        (n,) = rank(self.input, "input", 1)
        return ((None,), (n,))
