"""Activations without attributes: the result has the operand's shape and type."""

from luciole.ir.op import Op, dtype_of, like, operand
from luciole.ir.ops.elementwise_unary import Unary
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator


class Tanh(Unary, code=BuiltinOperator.TANH):
    """Hyperbolic tangent."""


class Logistic(Unary, code=BuiltinOperator.LOGISTIC):
    """1 / (1 + e^-x)."""


class Rectifier(Op):
    """Base of the linear units; x below is an element of ``features``."""

    features: Value = operand()

    infer_shape = like("features")
    infer_dtype = dtype_of("features")


class Relu(Rectifier, code=BuiltinOperator.RELU):
    """max(x, 0)."""


class Relu6(Rectifier, code=BuiltinOperator.RELU6):
    """min(max(x, 0), 6)."""


class ReluN1To1(Rectifier, code=BuiltinOperator.RELU_N1_TO_1):
    """min(max(x, -1), 1)."""


class Relu0To1(Rectifier, code=BuiltinOperator.RELU_0_TO_1):
    """min(max(x, 0), 1)."""


class Elu(Rectifier, code=BuiltinOperator.ELU):
    """x where it is not negative, else e^x - 1."""


class HardSwish(Rectifier, code=BuiltinOperator.HARD_SWISH, options="HardSwishOptions"):
    """x min(max(x + 3, 0), 6) / 6."""
