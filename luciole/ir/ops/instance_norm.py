"""INSTANCE_NORM."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class InstanceNorm(Op, code=BuiltinOperator.INSTANCE_NORM, options="InstanceNormOptions"):
    """activation(gamma (x - mean) / sqrt(variance + epsilon) + beta), over each channel's pixels.

    Input [N, H, W, C], or [N, C, L] with the channels before the elements; gamma and beta [C], or
    [1] for all channels. Ulyanov, Vedaldi, Lempitsky, arXiv:1607.08022, equation 2.
    """

    input: Value = operand()
    gamma: Value = operand()
    beta: Value = operand()

    epsilon: float = attr(default=0.0, dump="epsilon")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    quant = Quant(since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape = rank(self.input, "input", 3, 4)
        channels = shape[3] if len(shape) == 4 else shape[1]
        check_factors(self.gamma, "gamma", channels)
        check_factors(self.beta, "beta", channels)
        return shape


def check_factors(value: Value, name: str, channels: int | None) -> None:
    """Raise ShapeError unless an operand is a vector of one number, or one for each channel."""
    (n,) = rank(value, name, 1)
    if n not in (None, 1) and channels not in (None, n):
        raise ShapeError(f"{name} has {n} elements, input has {channels} channels")
