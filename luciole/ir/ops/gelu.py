"""GELU."""

from luciole.ir.fields import attr
from luciole.ir.ops.activations import Rectifier
from luciole.schema.enums import BuiltinOperator


class Gelu(Rectifier, code=BuiltinOperator.GELU, options="GeluOptions"):
    """x times the normal distribution function of x, exact or approximated with tanh.

    Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, section 2.
    """

    approximate: bool = attr(default=False, dump="approximate")
