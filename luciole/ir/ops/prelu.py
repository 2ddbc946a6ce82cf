"""PRELU."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import broadcast
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class PRelu(Op, code=BuiltinOperator.PRELU):
    """x where it is not negative, else alpha x; alpha is stretched to the input's shape."""

    input: Value = operand()
    alpha: Value = operand()

    quant = Quant(since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape, alpha = self.input.shape, self.alpha.shape
        result = broadcast(shape, alpha)
        grown = any(n == 1 and m != 1 for n, m in zip(shape, result, strict=False))
        if len(result) != len(shape) or grown:
            raise ShapeError(
                f"alpha {shape_text(alpha)} does not stretch to the input's {shape_text(shape)}"
            )
        return result
