"""Comparisons of two tensors, element by element: both are stretched to a common shape."""

from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.quant import SECOND, Quant
from luciole.schema.enums import BuiltinOperator, TensorType


class Comparison(Binary):
    """Base of the family: the result is BOOL."""

    quant = Quant()

    def infer_dtype(self, /) -> TensorType:
        return TensorType.BOOL


class Order(Comparison):
    """Base of comparisons that tell which of two numbers is larger: TFLite's kernels compare
    integers of 16 bits as they are.
    """

    quant = Quant(unscaled=(TensorType.INT16,))


class Less(Order, code=BuiltinOperator.LESS, options="LessOptions"):
    """x < y."""


class LessEqual(Order, code=BuiltinOperator.LESS_EQUAL, options="LessEqualOptions"):
    """x <= y."""

    quant = Quant(unscaled=(TensorType.INT16,), since=SECOND)


class Greater(Order, code=BuiltinOperator.GREATER, options="GreaterOptions"):
    """x > y."""

    quant = Quant(unscaled=(TensorType.INT16,), since=SECOND)


class GreaterEqual(Order, code=BuiltinOperator.GREATER_EQUAL, options="GreaterEqualOptions"):
    """x >= y."""


class Equal(Comparison, code=BuiltinOperator.EQUAL, options="EqualOptions"):
    """x == y."""


class NotEqual(Comparison, code=BuiltinOperator.NOT_EQUAL, options="NotEqualOptions"):
    """x != y."""


COMPARISONS: tuple[type[Comparison], ...] = (
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
)
