"""L2_NORMALIZATION."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Fixed, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class L2Normalization(Op, code=BuiltinOperator.L2_NORMALIZATION, options="L2NormOptions"):
    """x / max(sqrt(sum x^2), 1e-6), the sum along the last axis.

    A result of integers has the scale 1 / 128, and the zero point 0 (INT8) or 128 (UINT8).
    """

    input: Value = operand()

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    quant = Quant(result=Fixed(int8=(1 / 128, 0), uint8=(1 / 128, 128)), since=SECOND)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        if not self.input.shape:
            raise ShapeError("input is a scalar, at least one axis is needed")
        return self.input.shape
