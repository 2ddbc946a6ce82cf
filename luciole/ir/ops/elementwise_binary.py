"""Binary element-wise operators: both operands are stretched to a common shape, as in NumPy."""

from collections.abc import Iterator

from luciole.ir.op import Op, attr, dtype_of, operand
from luciole.ir.rules import broadcast
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


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
    """Base of those that carry a fused activation."""

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )


class Add(Arithmetic, code=BuiltinOperator.ADD, options="AddOptions"):
    """activation(x + y)."""

    pot_scale_int16: bool = attr(default=True)


class Sub(Arithmetic, code=BuiltinOperator.SUB, options="SubOptions"):
    """activation(x - y)."""

    pot_scale_int16: bool = attr(default=True)


class Mul(Arithmetic, code=BuiltinOperator.MUL, options="MulOptions"):
    """activation(x * y)."""


class Div(Arithmetic, code=BuiltinOperator.DIV, options="DivOptions"):
    """activation(x / y); integers are divided toward zero."""


class Maximum(Binary, code=BuiltinOperator.MAXIMUM, options="MaximumMinimumOptions"):
    """The larger of x and y."""


class Minimum(Binary, code=BuiltinOperator.MINIMUM, options="MaximumMinimumOptions"):
    """The smaller of x and y."""
