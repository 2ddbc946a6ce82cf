"""Parts of networks that take a tensor of any rank and give one of the same shape."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Value
from luciole.ir.ops.activations import Logistic, Relu, Tanh
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import (
    Add,
    Div,
    Maximum,
    Minimum,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from luciole.ir.ops.elementwise_unary import Abs, Exp, Log, Neg, Rsqrt, Sqrt, Square
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.strided_slice import StridedSlice
from tests.fuzz.rewriting.maker import Maker


def dense(m: Maker, x: Value) -> Value:
    """Layers along the last axis, an activation between them."""
    hidden = m.activated(m.dense(x, m.count(4, 12), bias=m.chance(0.8)))
    return m.dense(hidden, x.dims[-1])


def activation(m: Maker, x: Value) -> Value:
    return m.activated(x)


def residual(m: Maker, x: Value) -> Value:
    return m.add(Add(x, dense(m, x)))


def gated(m: Maker, x: Value) -> Value:
    """A gated linear unit: one half of a layer's results, times the logistic function of the
    other half, whose size is another one.
    """
    last = len(x.dims) - 1
    outputs = x.dims[last]
    sizes = np.repeat(np.exp2(m.rng.integers(-3, 2, 2)), outputs).astype(np.float32)
    weights = m.normal(2 * outputs, outputs) * sizes[:, None] / np.float32(outputs**0.5)
    both = m.layer(x, m.constant(weights), m.constant(sizes * m.normal(2 * outputs, size=0.3)))
    halves = m.parts(Split(m.ints(last), both, num_splits=2))
    return m.add(Mul(halves[0], m.add(Logistic(halves[1]))))


def halves(m: Maker, x: Value) -> Value:
    """Two uneven pieces, each on a way of its own, put together again."""
    last = len(x.dims) - 1
    if x.dims[last] < 2:
        return m.activated(x)
    first = m.count(1, x.dims[last] - 1)
    sizes = m.ints(first, -1 if m.chance(0.5) else x.dims[last] - first)
    parts = m.parts(SplitV(x, sizes, m.ints(last), num_splits=2))
    ways = (m.activated(parts[0]), m.add(Mul(parts[1], m.number(m.one_of((0.1, 0.5, 3.0))))))
    m.extras.append(parts[m.count(0, 1)])
    return m.add(Concatenation(ways, axis=last))


def joined(m: Maker, x: Value) -> Value:
    """Two ways put together, one perhaps far larger than the other, and a layer behind."""
    last = len(x.dims) - 1
    factor = m.number(m.one_of((1.0, 0.05, 8.0)))
    ways = (m.activated(x), m.add(Mul(dense(m, x), factor)))
    return m.dense(m.add(Concatenation(ways, axis=last)), x.dims[-1])


def shuffled(m: Maker, x: Value) -> Value:
    """Halves in the other order, one of them on a way of its own, as ShuffleNet and the rotations
    of positions have them.
    """
    last = len(x.dims) - 1
    if x.dims[last] % 2:
        return dense(m, x)
    sizes = np.repeat(np.exp2(m.rng.integers(-2, 3, 2)), x.dims[last] // 2).astype(np.float32)
    uneven = m.add(Mul(x, m.constant(sizes)))
    first, second = m.parts(Split(m.ints(last), uneven, num_splits=2))
    kind = m.count(0, 2)
    if kind == 0:
        other = dense(m, second)
    elif kind == 1:
        other = m.add(Mul(second, m.number(-1)))
    else:
        other = m.add(Mul(second, m.number(m.one_of((1.5, 4.0)))))
    return m.add(Concatenation((other, first), axis=last))


def maxout(m: Maker, x: Value) -> Value:
    """The larger, or the sum, of two of a layer's results."""
    last = len(x.dims) - 1
    both = m.dense(x, 2 * x.dims[last])
    first, second = m.parts(Split(m.ints(last), both, num_splits=2))
    grown = m.add(Mul(second, m.number(m.one_of((1.0, 1.8)))))
    return m.add(m.one_of((Maximum, Maximum, Minimum, Add))(first, grown))


def standardized(m: Maker, x: Value, axes: tuple[int, ...]) -> Value:
    """The mean of some axes taken off, and divided by the deviation, in a converter's spelling."""
    where = m.ints(*axes)
    mean = m.add(Mean(x, where, keep_dims=True))
    away = m.add(Sub(x, mean))
    spelling = m.count(0, 3)
    squares = m.add((SquaredDifference(x, mean), Square(away), Mul(away, away))[spelling % 3])
    variance = m.add(Mean(squares, where, keep_dims=True))
    above = m.add(Add(variance, m.number(m.one_of((1e-5, 1e-3)))))
    if spelling == 0:
        return m.add(Mul(away, m.add(Rsqrt(above))))
    if spelling == 1:
        return m.add(Div(away, m.add(Pow(above, m.number(0.5)))))
    return m.add(Div(away, m.add(Sqrt(above))))


def layer_norm(m: Maker, x: Value) -> Value:
    return m.affine(standardized(m, x, (len(x.dims) - 1,)))


def rms_norm(m: Maker, x: Value) -> Value:
    where = m.ints(len(x.dims) - 1)
    mean = m.add(Mean(m.add(Square(x)), where, keep_dims=True))
    share = m.add(Rsqrt(m.add(Add(mean, m.number(1e-5)))))
    return m.affine(m.add(Mul(x, share)))


def unit_length(m: Maker, x: Value) -> Value:
    """``F.normalize``: divided by the length, which is kept off 0; or the operator for it."""
    if m.chance(0.3):
        return m.affine(m.add(L2Normalization(x)))
    where = m.ints(len(x.dims) - 1)
    length = m.add(Sqrt(m.add(Sum(m.add(Mul(x, x)), where, keep_dims=True))))
    return m.affine(m.add(Div(x, m.add(Maximum(length, m.number(1e-6))))))


def gelu_by_erf(m: Maker, x: Value) -> Value:
    """GELU from ONNX: the error function by GELU of another number, divided by that."""
    x = m.dense(x, x.dims[-1])
    inner = m.add(Mul(x, m.number(math.sqrt(0.5))))
    scaled = m.add(Mul(inner, m.number(math.sqrt(2))))
    share = m.add(Div(m.add(Gelu(scaled, approximate=False)), scaled))
    far = m.add(Sub(m.add(Mul(share, m.number(2))), m.number(1)))
    near = m.add(Mul(inner, m.number(2 / math.sqrt(math.pi))))
    small = m.add(Less(m.add(Abs(inner)), m.number(1e-3)))
    erf = m.add(SelectV2(small, near, far))
    return m.add(Mul(m.add(Mul(x, m.add(Add(erf, m.number(1))))), m.number(0.5)))


def gelu_by_tanh(m: Maker, x: Value) -> Value:
    cube = m.add(Pow(x, m.number(3)) if m.chance(0.5) else Mul(x, m.add(Mul(x, x))))
    inner = m.add(Add(x, m.add(Mul(cube, m.number(0.044715)))))
    grown = m.add(Add(m.add(Tanh(m.add(Mul(inner, m.number(0.7978846))))), m.number(1)))
    return m.add(Mul(m.add(Mul(x, grown)), m.number(0.5)))


def softsign(m: Maker, x: Value) -> Value:
    """x / (1 + |x|), or x / (1 + e^-x), or x / mean |x|."""
    kind = m.count(0, 2)
    if kind == 0:
        below = m.add(Add(m.add(Abs(x)), m.number(1)))
    elif kind == 1:
        below = m.add(Add(m.add(Exp(m.add(Neg(x)))), m.number(1)))
    else:
        mean = m.add(Mean(m.add(Abs(x)), m.ints(len(x.dims) - 1), keep_dims=True))
        below = m.add(Add(mean, m.number(1e-3)))
    return m.add(Div(x, below))


def log_of_shares(m: Maker, x: Value) -> Value:
    if m.chance(0.4):
        return m.add(LogSoftmax(x))
    shares = m.add(Softmax(x, beta=1.0))
    return m.add(Log(m.add(Add(shares, m.number(m.one_of((1e-3, 1e-5)))))))


def log_of_sums(m: Maker, x: Value) -> Value:
    """log(1 + e^x), or the root of x^2 + 1 beside it."""
    if m.chance(0.5):
        return m.add(Sqrt(m.add(Add(m.add(Square(x)), m.number(1)))))
    large = m.add(Relu(x))
    small = m.add(Exp(m.add(Neg(m.add(Abs(x))))))
    return m.add(Add(large, m.add(Log(m.add(Add(small, m.number(1)))))))


def bounds(m: Maker, x: Value) -> Value:
    """The larger or smaller one of two tensors, or of a tensor and constants."""
    cls, other = (Maximum, Minimum) if m.chance(0.5) else (Minimum, Maximum)
    if m.chance(0.5):
        return m.add(cls(x, dense(m, x)))
    limits = m.number(-0.5) if m.chance(0.5) else m.constant(m.normal(x.dims[-1]))
    half = m.add(cls(x, limits) if m.chance(0.7) else cls(limits, x))
    far = 4.0 if other is Minimum else -4.0
    return m.add(other(half, m.number(far)))


def chosen(m: Maker, x: Value) -> Value:
    """Elements of one of two tensors, by a comparison."""
    small = m.add(Less(x, m.number(0.25)))
    return m.add(SelectV2(small, m.add(Mul(x, m.number(0.2))), dense(m, x)))


def excited(m: Maker, x: Value) -> Value:
    """Channels times what a small network makes of an extreme or the mean of the others."""
    last = len(x.dims) - 1
    axes = m.ints(*range(1, last)) if last > 1 else m.ints(last)
    mean = m.add(m.one_of((Mean, ReduceMax, ReduceMin))(x, axes, keep_dims=True))
    hidden = m.dense(m.activated(m.dense(mean, 4)), x.dims[-1])
    return m.add(Mul(x, m.add(Logistic(hidden))))


def moved(m: Maker, x: Value) -> Value:
    """Elements moved about: reversed, picked, padded and cut again."""
    last, kind = len(x.dims) - 1, m.count(0, 3)
    if kind == 0:
        return m.add(ReverseV2(x, m.ints(last)))
    if kind == 1:
        order = m.rng.permutation(x.dims[last]).tolist()
        return m.add(Gather(x, m.ints(*order), axis=last))
    borders = np.zeros((last + 1, 2), np.int32)
    borders[last] = m.count(0, 2), m.count(1, 2)
    if kind == 2:
        padded = m.add(Pad(x, m.constant(borders)))
    else:
        padded = m.add(PadV2(x, m.constant(borders), m.number(m.one_of((0.5, -2.0)))))
    if m.chance(0.5):
        begin = [0] * last + [m.count(0, int(borders[last].sum()))]
        return m.add(Slice(padded, m.ints(*begin), m.ints(*x.dims)))
    begin, ends = [0] * (last + 1), list(x.dims)
    return m.add(StridedSlice(padded, m.ints(*begin), m.ints(*ends), m.ints(*[1] * (last + 1))))


def uneven(m: Maker, x: Value) -> Value:
    """Two layers with channels of uneven sizes between them, which a RELU lets pass."""
    hidden, inputs = m.count(8, 16), x.dims[-1]
    factors = m.factors(hidden)
    front = m.normal(hidden, inputs) / np.float32(inputs**0.5) * factors[:, None]
    offsets = m.normal(hidden, size=0.3) * factors
    behind = m.normal(inputs, hidden) / np.float32(hidden**0.5) / factors
    first = m.layer(x, m.constant(front), m.constant(offsets))
    bias = m.constant(m.normal(inputs, size=0.3))
    return m.layer(m.add(Relu(first)), m.constant(behind), bias)


BLOCKS = (
    *(dense, activation, residual, gated, halves, joined, layer_norm, rms_norm, unit_length),
    *(gelu_by_erf, gelu_by_tanh, softsign, log_of_shares, log_of_sums, bounds, chosen),
    *(excited, moved, uneven, shuffled, maxout),
)
PLAIN = (dense, activation, residual, gated, halves, joined, bounds, uneven, shuffled, maxout)
"""Of operators that have a C form."""
