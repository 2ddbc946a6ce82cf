"""Logic of truth values, element by element."""

from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.ops.elementwise_unary import Unary
from luciole.schema.enums import BuiltinOperator


class LogicalOr(Binary, code=BuiltinOperator.LOGICAL_OR, options="LogicalOrOptions"):
    """x or y."""


class LogicalAnd(Binary, code=BuiltinOperator.LOGICAL_AND, options="LogicalAndOptions"):
    """x and y."""


class LogicalNot(Unary, code=BuiltinOperator.LOGICAL_NOT, options="LogicalNotOptions"):
    """Not x."""
