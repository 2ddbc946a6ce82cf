"""Put GELU together."""

from __future__ import annotations

import math

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.ops.gelu import Gelu
from luciole.ir.rewriting.algebra import computed_from, equals, expand, monomial
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.error_function import error_function_of
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by
from luciole.ir.value import Value

_ROOT_2_PI = math.sqrt(2 / math.pi)
_CUBE = 0.044715 * _ROOT_2_PI
"""Of the approximation by TANH: Hendrycks and Gimpel, arXiv:1606.08415, section 2."""


@rewrite(Mul, Div, makes=(Gelu,))
def fuse_gelu(graph: Graph, op: Mul | Div) -> bool:
    """x / 2 (1 + erf(x / sqrt(2))) -> GELU(x), also of erf spelled out, and by TANH.

    However it is written: what counts is the polynomial in x and in erf or TANH.
    """
    if not is_float(op.output):
        return False
    for inner in computed_from(op.output, _NEAR):
        error, tangent = error_function_of(inner), made_by(inner, Tanh)
        argument = error if error is not None else tangent.x if tangent is not None else None
        if argument is None:
            continue
        for x in computed_from(argument, _NEAR):
            if _is_gelu(op.output, inner, argument, x, exact=error is not None):
                become(graph, op, Gelu(x, approximate=error is None))
                return True
    return False


_NEAR = 24
"""Tensors that are looked at on each side of erf or TANH."""


def _is_gelu(result: Value, inner: Value, argument: Value, x: Value, *, exact: bool) -> bool:
    """Return whether a result is x / 2 (1 + inner), and the argument of that what it is in GELU."""
    if x is argument or x.shape != result.shape:
        return False
    product = {monomial(x): 0.5, monomial(x, inner): 0.5}
    if not equals(expand(result, (x, inner)), product):
        return False
    terms = (
        {monomial(x): math.sqrt(0.5)}
        if exact
        else {monomial(x): _ROOT_2_PI, monomial((x, 3.0)): _CUBE}
    )
    return equals(expand(argument, (x,)), terms)
