"""LEAKY_RELU."""

from luciole.ir.fields import attr
from luciole.ir.ops.activations import Rectifier
from luciole.ir.quant import SECOND, Quant
from luciole.schema.enums import BuiltinOperator


class LeakyRelu(Rectifier, code=BuiltinOperator.LEAKY_RELU, options="LeakyReluOptions"):
    """x where it is positive, else alpha x."""

    alpha: float = attr(default=0.0, dump="alpha")

    quant = Quant(since=SECOND)
