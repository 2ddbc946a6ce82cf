"""Activations without attributes: the result has the operand's shape and type. Some of them other
operators carry fused into them.
"""

import math
from typing import ClassVar

from luciole.ir.fields import dtype_of, like, operand
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_unary import Unary
from luciole.ir.quant import FIRST, Fixed, Quant, Saturation
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class Tanh(Unary, code=BuiltinOperator.TANH):
    """Hyperbolic tangent."""

    quant = Quant(
        result=Fixed(int8=(1 / 128, 0), uint8=(1 / 128, 128), int16=(1 / 32768, 0)),
        saturation=Saturation(math.atanh(1 - 2**-8), math.atanh(1 - 2**-16)),
    )


class Logistic(Unary, code=BuiltinOperator.LOGISTIC):
    """1 / (1 + e^-x)."""

    quant = Quant(
        result=Fixed(int8=(1 / 256, -128), uint8=(1 / 256, 0), int16=(1 / 32768, 0)),
        saturation=Saturation(math.log(2**9 - 1), math.log(2**16 - 1)),
    )


class Rectifier(Op):
    """Base of the linear units; x below is an element of ``features``."""

    features: Value = operand()

    quant = Quant()
    infer_shape = like("features")
    infer_dtype = dtype_of("features")


class Clamp(Rectifier):
    """Base of the linear units that are x between two ``limits``, NaN staying NaN."""

    limits: ClassVar[tuple[float, float]]


class Relu(Clamp, code=BuiltinOperator.RELU):
    """max(x, 0)."""

    limits = (0.0, math.inf)


class Relu6(Clamp, code=BuiltinOperator.RELU6):
    """min(max(x, 0), 6)."""

    limits = (0.0, 6.0)


class ReluN1To1(Clamp, code=BuiltinOperator.RELU_N1_TO_1):
    """min(max(x, -1), 1)."""

    quant = Quant(since=FIRST)

    limits = (-1.0, 1.0)


class Relu0To1(Clamp, code=BuiltinOperator.RELU_0_TO_1):
    """min(max(x, 0), 1)."""

    quant = Quant(since=FIRST)

    limits = (0.0, 1.0)


class Elu(Rectifier, code=BuiltinOperator.ELU):
    """x where it is not negative, else e^x - 1."""

    quant = Quant(since=FIRST)


class HardSwish(Rectifier, code=BuiltinOperator.HARD_SWISH, options="HardSwishOptions"):
    """x min(max(x + 3, 0), 6) / 6."""

    quant = Quant(since=FIRST)


FUSED: dict[ActivationFunctionType, type[Op]] = {
    ActivationFunctionType.RELU: Relu,
    ActivationFunctionType.RELU_N1_TO_1: ReluN1To1,
    ActivationFunctionType.RELU6: Relu6,
    ActivationFunctionType.TANH: Tanh,
}
"""The fused activations that kernels apply, and the operators that do the same alone."""

FUSED_AS = {cls: activation for activation, cls in FUSED.items()}
"""Names of operators where they are fused into another one."""

APPLIED = (ActivationFunctionType.NONE, *FUSED)
"""Fused activations that a kernel may have to apply."""

LIMITS: dict[ActivationFunctionType, tuple[float, float]] = {
    ActivationFunctionType.NONE: (-math.inf, math.inf),
    **{a: cls.limits for a, cls in FUSED.items() if issubclass(cls, Clamp)},
}
"""Where fused activations cut off, NaN staying NaN; TANH is not one of these."""
