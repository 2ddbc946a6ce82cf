"""Put PRELU together."""

from __future__ import annotations

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Sub
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.ir.rewriting.algebra import Polynomial, computed_from, expand, monomial
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, with_constant
from luciole.ir.value import Value


@rewrite(Add, Sub, makes=(PRelu, LeakyRelu))
def fuse_prelu(graph: Graph, op: Add | Sub) -> bool:
    """RELU(x) + a (x - ABS(x)) / 2 -> PRELU(x, a), or LEAKY_RELU(x) where a is one number.

    Also RELU(x) - a RELU(-x), and with MINIMUM and MAXIMUM.
    """
    if not is_float(op.output):
        return False
    for part in computed_from(op.output, _NEAR):
        x = _source(part)
        slope = _slope(op.output, x) if x is not None and x.shape == op.output.shape else None
        if x is not None and slope is not None:
            become(graph, op, _unit(graph, op, x, slope))
            return True
    return False


_NEAR = 16
"""Tensors that are looked at."""


def _unit(graph: Graph, op: Op, x: Value, slope: Array) -> Op:
    if slope.size == 1 and slope.ndim <= 1:  # with more axes it is one of a single channel
        return LeakyRelu(x, alpha=float(slope.reshape(-1)[0]))
    return PRelu(x, constant(graph, f"{op.name}/alpha", slope))


def _slope(result: Value, x: Value) -> Array | None:
    """Find a where a result is p + a (x - p), p the part of x above 0; None where it is not."""
    terms = expand(result, (x,))
    if terms is None:
        return None
    above: Array = np.zeros(())
    below: Array = np.zeros(())
    for product, factor in terms.items():
        ((value, power), *others) = product or [(None, 0.0)]
        shares = None if value is None or others or power != 1 else _shares(value, x)
        if shares is None:
            return None
        above, below = above + factor * shares[0], below + factor * shares[1]
    if not np.allclose(above + below, 1, rtol=0, atol=1e-6) or not above.any():
        return None
    axes = np.ndim(below)
    fits = axes <= len(x.shape) and all(
        n in (1, extent) for n, extent in zip(np.shape(below)[::-1], x.shape[::-1], strict=False)
    )
    return np.asarray(below, np.float32) if fits else None


def _shares(value: Value, x: Value) -> tuple[float, float] | None:
    """Write a value as c p + d x, p the part of x above 0: the numbers c and d."""
    op = value.producer.op if value.producer is not None else None
    if value is x:
        return 0.0, 1.0
    if isinstance(op, Abs) and op.x is x:
        return 2.0, -1.0
    if isinstance(op, Relu):
        return (1.0, 0.0) if op.features is x else _turned(op.features, x, (1.0, -1.0))
    if isinstance(op, Maximum | Minimum):
        pair = with_constant(op)
        if pair is None or not is_filled(pair[1], 0) or pair[0] is not x:
            return None
        return (1.0, 0.0) if isinstance(op, Maximum) else (-1.0, 1.0)
    return None


def _turned(value: Value, x: Value, shares: tuple[float, float]) -> tuple[float, float] | None:
    """Return the shares where a value is -x: RELU(-x) is p - x."""
    negative: Polynomial | None = expand(value, (x,))
    if negative is None or negative.keys() != {monomial(x)}:
        return None
    return shares if bool((negative[monomial(x)] == -1).all()) else None


def _source(value: Value) -> Value | None:
    """Find the operand of a part of a PRELU: of RELU, ABS, MAXIMUM and MINIMUM."""
    op = value.producer.op if value.producer is not None else None
    if isinstance(op, Abs):
        return op.x
    if isinstance(op, Relu):
        return op.features
    pair = with_constant(op) if isinstance(op, Maximum | Minimum) else None
    return None if pair is None else pair[0]
