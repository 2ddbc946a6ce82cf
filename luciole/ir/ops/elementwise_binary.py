"""Binary element-wise operators: both operands are stretched to a common shape, as in NumPy."""

from collections.abc import Iterator

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Like, Pole, Quant
from luciole.ir.rules import broadcast
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType

BYTES = (TensorType.INT8, TensorType.UINT8)
"""Types of MUL's result on 16 bits where it is declared so."""


class Binary(Op):
    """Base of the family."""

    x: Value = operand()
    y: Value = operand()

    infer_dtype = dtype_of("x")

    def infer_shape(self, /) -> Shape:
        return broadcast(self.x.shape, self.y.shape)

    def verify(self, /) -> Iterator[str]:
        if self.x.dtype != self.y.dtype:
            yield f"x is {self.x.dtype.name} and y is {self.y.dtype.name}; both must have one type"


class Arithmetic(Binary):
    """Base of operators that carry a fused activation."""

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    quant = Quant()


class Add(Arithmetic, code=BuiltinOperator.ADD, options="AddOptions"):
    """activation(x + y)."""

    quant = Quant(terms=(1, 1))
    pot_scale_int16: bool = attr(default=True)


class Sub(Arithmetic, code=BuiltinOperator.SUB, options="SubOptions"):
    """activation(x - y)."""

    quant = Quant(terms=(1, -1))
    pot_scale_int16: bool = attr(default=True)


class Mul(Arithmetic, code=BuiltinOperator.MUL, options="MulOptions"):
    """activation(x * y)."""

    def infer_dtype(self, /) -> TensorType:
        dtype = self.x.dtype
        coarser = self.results and dtype == TensorType.INT16 and self.output.dtype in BYTES
        return self.output.dtype if coarser else dtype


class Div(Arithmetic, code=BuiltinOperator.DIV, options="DivOptions"):
    """activation(x / y); integers are divided toward zero."""

    quant = Quant(since=SECOND)
    poles = (Pole("y"),)


class Maximum(Binary, code=BuiltinOperator.MAXIMUM, options="MaximumMinimumOptions"):
    """The larger of x and y."""

    quant = Quant(result=Like("x", "y"))


class Minimum(Binary, code=BuiltinOperator.MINIMUM, options="MaximumMinimumOptions"):
    """The smaller of x and y."""

    quant = Quant(result=Like("x", "y"))


class Pow(Binary, code=BuiltinOperator.POW, options="PowOptions"):
    """x to the power of y; integers take no negative exponent."""

    poles = (Pole("x", exponent="y"),)


class FloorDiv(Binary, code=BuiltinOperator.FLOOR_DIV, options="FloorDivOptions"):
    """x / y, rounded down."""

    poles = (Pole("y"),)


class FloorMod(Binary, code=BuiltinOperator.FLOOR_MOD, options="FloorModOptions"):
    """Remainder of x / y, rounded down; it has the sign of y."""

    poles = (Pole("y"),)


class SquaredDifference(
    Binary, code=BuiltinOperator.SQUARED_DIFFERENCE, options="SquaredDifferenceOptions"
):
    """(x - y)^2."""

    quant = Quant(since=SECOND)


class Atan2(Binary, code=BuiltinOperator.ATAN2, options="ATan2Options"):
    """The angle of the point (y, x), in radians: x is the ordinate, as in C."""


class BitwiseXor(Binary, code=BuiltinOperator.BITWISE_XOR, options="BitwiseXorOptions"):
    """The bits in which x and y differ."""


class RightShift(Binary, code=BuiltinOperator.RIGHT_SHIFT, options="RightShiftOptions"):
    """x shifted right by y bits, at least 0 and less than its own; the sign fills up."""
