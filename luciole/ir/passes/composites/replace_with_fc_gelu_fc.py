"""Put GELU between two dense layers together."""

from __future__ import annotations

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.rewriting.algebra import computed_from, equals, expand, monomial
from luciole.ir.rewriting.edits import is_float, is_private, put
from luciole.ir.rewriting.error_function import error_function_of
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer, set_weights
from luciole.ir.value import Value


@rewrite(FullyConnected, makes=(Gelu,))
def replace_with_fc_gelu_fc(graph: Graph, op: FullyConnected) -> bool:
    """FC(FC(x, v) (1 + erf(FC(x, v / sqrt(2)))), w) -> FC(GELU(FC(x, v)), 2 w).

    FC is a dense layer.
    """
    product = made_by(op.input, Mul)
    weights = op.weights.data
    if product is None or weights is None or not is_plain_layer(op) or not is_float(op.input):
        return False
    if not is_private(op.input):
        return False
    for inner in computed_from(op.input, _NEAR):
        argument = error_function_of(inner)
        below = None if argument is None else made_by(argument, FullyConnected)
        value = None if below is None else _twin(product, below)
        if value is None:
            continue
        terms = {monomial(value): 1.0, monomial(value, inner): 1.0}
        if equals(expand(op.input, (value, inner)), terms):
            gelu = put(graph, op, Gelu(value, approximate=False), f"{op.name}/gelu")
            op.set_operand(0, gelu)
            set_weights(graph, op, 2 * weights)
            return True
    return False


_NEAR = 8
"""Tensors that are looked at."""


def _twin(product: Mul, below: FullyConnected) -> Value | None:
    """Find the dense layer's result that is sqrt(2) times what erf is taken of."""
    for value in (product.x, product.y):
        above = made_by(value, FullyConnected)
        if above is None or above.input is not below.input or not _is_larger(above, below):
            continue
        if is_plain(above) and is_plain(below) and above.keep_num_dims == below.keep_num_dims:
            return value
    return None


def _is_larger(above: FullyConnected, below: FullyConnected) -> bool:
    """Return whether weights and bias are those of the other layer times sqrt(2)."""
    if not (is_plain_layer(above) and is_plain_layer(below)):
        return False
    if (above.bias is None) != (below.bias is None):
        return False
    pairs = [(above.weights, below.weights)]
    if above.bias is not None and below.bias is not None:
        pairs.append((above.bias, below.bias))
    return all(_is_scaled(one.data, other.data) for one, other in pairs)


def _is_scaled(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None or one.shape != other.shape:
        return False
    return bool(np.allclose(one * np.sqrt(0.5), other, rtol=1e-5, atol=1e-6))
