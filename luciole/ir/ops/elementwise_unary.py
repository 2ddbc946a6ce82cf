"""Unary element-wise operators without attributes: the result has the operand's shape and type."""

from luciole.ir.fields import dtype_of, like, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Pole, Quant
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator


class Unary(Op):
    """Base of the family."""

    x: Value = operand()

    infer_shape = like("x")
    infer_dtype = dtype_of("x")


class Abs(Unary, code=BuiltinOperator.ABS, options="AbsOptions"):
    """|x|."""

    quant = Quant()


class Neg(Unary, code=BuiltinOperator.NEG, options="NegOptions"):
    """-x."""


class Exp(Unary, code=BuiltinOperator.EXP, options="ExpOptions"):
    """e^x."""

    quant = Quant(since=SECOND)


class Log(Unary, code=BuiltinOperator.LOG):
    """Natural logarithm."""

    quant = Quant(since=SECOND)
    poles = (Pole("x", refused=()),)


class Sqrt(Unary, code=BuiltinOperator.SQRT):
    """Square root."""

    quant = Quant(since=SECOND)
    poles = (Pole("x", refused=(-1,), finite=True),)


class Rsqrt(Unary, code=BuiltinOperator.RSQRT):
    """1 / sqrt(x)."""

    quant = Quant()
    poles = (Pole("x", refused=(-1,)),)


class Square(Unary, code=BuiltinOperator.SQUARE, options="SquareOptions"):
    """x * x."""


class Sin(Unary, code=BuiltinOperator.SIN):
    """Sine of radians."""


class Cos(Unary, code=BuiltinOperator.COS, options="CosOptions"):
    """Cosine of radians."""


class Ceil(Unary, code=BuiltinOperator.CEIL):
    """The next integer above."""


class Floor(Unary, code=BuiltinOperator.FLOOR):
    """The next integer below."""


class Round(Unary, code=BuiltinOperator.ROUND):
    """The nearest integer; the even one from the middle between two."""


class Sign(Unary, code=BuiltinOperator.SIGN, options="SignOptions"):
    """-1, 0 or 1."""


class ZerosLike(Unary, code=BuiltinOperator.ZEROS_LIKE, options="ZerosLikeOptions"):
    """Zeros in the operand's shape and type."""
