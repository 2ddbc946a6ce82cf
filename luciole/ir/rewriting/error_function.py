"""Find erf, which neither TFLite nor circle has as an operator."""

from __future__ import annotations

import math

from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.elementwise_binary import Div
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.select import SelectV2
from luciole.ir.rewriting.algebra import ONE, computed_from, equals, expand, monomial
from luciole.ir.rewriting.patterns import is_filled, made_by, number_of
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value

_NEAR_0 = 0.01
"""Below it the importer of ONNX computes erf by its series."""


def error_function_of(value: Value) -> Value | None:
    """Return the argument of an error function; None where a value is none.

    Old converters write CUSTOM(Erf); our importer of ONNX writes 2 GELU(y) / y - 1 with
    y = x sqrt(2), and the series 2 x / sqrt(pi) (1 - x^2 / 3) where x is near 0.
    """
    op = value.producer.op if value.producer is not None else None
    if isinstance(op, UnknownOp) and op.custom == "Erf":
        return op.inputs[0]
    return _spelled_out(op) if isinstance(op, SelectV2) else None


def _spelled_out(op: SelectV2) -> Value | None:
    less = made_by(op.condition, Less)
    size = None if less is None else made_by(less.x, Abs)
    if less is None or size is None or not 0 < (number_of(less.y) or 0) <= _NEAR_0:
        return None
    x, slope = size.x, 2 / math.sqrt(math.pi)
    near = {monomial(x): slope, monomial((x, 3.0)): -slope / 3}
    share = next((v for v in computed_from(op.e, 8) if _is_share(v, op.condition, x)), None)
    if share is None or not equals(expand(op.t, (x,)), near):
        return None
    return x if equals(expand(op.e, (share,)), {monomial(share): 2.0, ONE: -1.0}) else None


def _is_share(value: Value, near: Value, x: Value) -> bool:
    """Return whether a value is GELU(y) / y, y = x sqrt(2), with another divisor near 0."""
    quotient = made_by(value, Div)
    gelu = None if quotient is None else made_by(quotient.x, Gelu)
    divisor = None if quotient is None else made_by(quotient.y, SelectV2)
    if gelu is None or divisor is None or gelu.approximate or divisor.condition is not near:
        return False
    y = gelu.features
    safe = divisor.e is y and is_filled(divisor.t, 1)
    return safe and equals(expand(y, (x,)), {monomial(x): math.sqrt(2)})
