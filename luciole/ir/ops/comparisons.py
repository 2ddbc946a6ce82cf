"""Comparisons of two tensors, element by element: both are stretched to a common shape."""

from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.quant import Quant
from luciole.schema.enums import BuiltinOperator, TensorType


class Comparison(Binary):
    """Base of the family: the result is BOOL."""

    quant = Quant()

    def infer_dtype(self, /) -> TensorType:
        return TensorType.BOOL


class Less(Comparison, code=BuiltinOperator.LESS, options="LessOptions"):
    """x < y."""


class LessEqual(Comparison, code=BuiltinOperator.LESS_EQUAL, options="LessEqualOptions"):
    """x <= y."""


class Greater(Comparison, code=BuiltinOperator.GREATER, options="GreaterOptions"):
    """x > y."""


class GreaterEqual(Comparison, code=BuiltinOperator.GREATER_EQUAL, options="GreaterEqualOptions"):
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
