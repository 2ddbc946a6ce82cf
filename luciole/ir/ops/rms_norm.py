"""RMS_NORM."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.instance_norm import check_factors
from luciole.ir.quant import FIRST, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class RmsNorm(Op, code=BuiltinOperator.RMS_NORM, options="RmsNormOptions"):
    """gamma x / sqrt(mean(x^2) + epsilon), the mean along the last axis.

    gamma has one number for each element of that axis, or one for all. Zhang and Sennrich,
    arXiv:1910.07467, equation 4.
    """

    input: Value = operand()
    gamma: Value = operand()

    epsilon: float = attr(default=0.0, dump="epsilon")

    quant = Quant(since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        if not self.input.shape:
            raise ShapeError("input is a scalar, at least one axis is needed")
        check_factors(self.gamma, "gamma", self.input.shape[-1])
        return self.input.shape
