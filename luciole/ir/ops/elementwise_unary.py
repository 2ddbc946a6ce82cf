"""Unary element-wise operators without attributes: the result has the operand's shape and type."""

from luciole.ir.op import Op, dtype_of, like, operand
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator


class Unary(Op):
    """Base of the family."""

    x: Value = operand()

    infer_shape = like("x")
    infer_dtype = dtype_of("x")


class Abs(Unary, code=BuiltinOperator.ABS, options="AbsOptions"):
    """|x|."""


class Neg(Unary, code=BuiltinOperator.NEG, options="NegOptions"):
    """-x."""


class Exp(Unary, code=BuiltinOperator.EXP, options="ExpOptions"):
    """e^x."""


class Log(Unary, code=BuiltinOperator.LOG):
    """Natural logarithm."""


class Sqrt(Unary, code=BuiltinOperator.SQRT):
    """Square root."""


class Rsqrt(Unary, code=BuiltinOperator.RSQRT):
    """1 / sqrt(x)."""


class Square(Unary, code=BuiltinOperator.SQUARE, options="SquareOptions"):
    """x * x."""
