"""Parts of networks over time: tensors [1, steps, channels]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from luciole.ir import Array, TensorType, Value
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Div, Mul, Sub
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.reduce import Mean, ReduceMax
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.split import Split
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.ops.unpack import Unpack
from luciole.schema.enums import ActivationFunctionType as Act
from tests.fuzz.rewriting.maker import Maker

WORDS = 20
"""Rows of an embedding."""


def attention(m: Maker, x: Value) -> Value:
    """Attention of a few heads, its scores perhaps masked."""
    _, steps, channels = x.dims
    heads = m.one_of([n for n in (1, 2) if channels % n == 0])
    depth = channels // heads
    if m.chance(0.4):
        both = m.dense(x, 3 * channels)
        queries, keys, values = m.parts(Split(m.ints(2), both, num_splits=3))
    else:
        queries, keys, values = (m.dense(x, channels, bias=m.chance(0.5)) for _ in range(3))
    turned = [_of_heads(m, part, heads) for part in (queries, keys, values)]
    scores = m.add(BatchMatMul(turned[0], turned[1], adjoint_rhs=True))
    if m.chance(0.5):
        scores = m.add(Mul(scores, m.number(1 / math.sqrt(depth))))
    else:
        scores = m.add(Div(scores, m.number(math.sqrt(depth))))
    shares = m.add(Softmax(masked(m, scores), beta=1.0))
    mixed = m.add(BatchMatMul(shares, turned[2]))
    back = m.add(Transpose(mixed, m.ints(0, 2, 1, 3)))
    joined = m.dense(m.reshape(back, 1, steps, channels), channels)
    return m.add(Add(x, joined)) if m.chance(0.6) else joined


def _of_heads(m: Maker, x: Value, heads: int) -> Value:
    _, steps, channels = x.dims
    split = m.reshape(x, 1, steps, heads, channels // heads)
    return m.add(Transpose(split, m.ints(0, 2, 1, 3)))


def masked(m: Maker, scores: Value) -> Value:
    """Scores [1, heads, steps, steps], some of which are to have no share: by a constant that is
    infinite or only large, or by an input of ones and zeros.
    """
    kind, steps = m.count(0, 5), scores.dims[-1]
    if kind == 0:
        return scores
    least = m.one_of((-np.inf, -np.inf, -1e9, -1e4))
    seen = _seen(m, steps)
    if kind in (1, 2):
        other = m.number(least) if kind == 1 else m.constant(np.full((1, 1, 1, 1), least, "f4"))
        return m.add(SelectV2(m.constant(seen[None, None]), scores, other))
    if kind == 3:
        return m.add(SelectV2(m.constant(~seen[None, None]), m.number(least), scores))
    if kind == 4:
        mask = np.where(seen, 0.0, least).astype(np.float32)
        return m.add(Add(scores, m.constant(mask[None, None])))
    there = m.input((1, steps))
    away = m.add(Mul(m.add(Sub(m.number(1), there)), m.number(m.one_of((-1e9, -1e4)))))
    return m.add(Add(scores, m.reshape(away, 1, 1, 1, steps)))


def _seen(m: Maker, steps: int) -> Array:
    """Which step sees which: those before it, or all that are no padding."""
    if m.chance(0.6):
        return np.tri(steps, dtype=bool)
    seen = np.ones((steps, steps), bool)
    seen[:, m.count(1, steps - 1) :] = False
    return seen


def unrolled(m: Maker, x: Value) -> Value:
    """An LSTM step by step, all steps with the same weights."""
    _, steps, channels = x.dims
    cells = channels
    sizes = np.repeat(np.exp2(m.rng.integers(-2, 2, 4)), cells).astype(np.float32)[:, None]
    drawn = [m.normal(4 * cells, n) * sizes / np.float32(n**0.5) for n in (channels, cells)]
    weights = [m.constant(array) for array in drawn]
    bias = m.constant(m.normal(4 * cells, size=0.3))
    hidden = cell = m.constant(np.zeros((1, cells), np.float32))
    states = []
    for one in m.parts(Unpack(x, num=steps, axis=1)):
        hidden, cell = step(m, (one, hidden, cell), weights, bias)
        states.append(hidden)
    m.extras += [cell, hidden]
    return m.add(Pack(tuple(states), values_count=steps, axis=1))


def step(
    m: Maker, before: tuple[Value, Value, Value], weights: list[Value], bias: Value
) -> tuple[Value, Value]:
    """One step of an LSTM: the input, what is hidden, and the cells [1, n] before it."""
    x, hidden, cell = before
    both = m.add(Add(m.layer(x, weights[0], bias), m.layer(hidden, weights[1], None)))
    i, f, g, o = m.parts(Split(m.ints(1), both, num_splits=4))
    kept = m.add(Mul(m.add(Logistic(f)), cell))
    cell = m.add(Add(kept, m.add(Mul(m.add(Logistic(i)), m.add(Tanh(g))))))
    return m.add(Mul(m.add(Logistic(o)), m.add(Tanh(cell)))), cell


def simple_recurrence(m: Maker, x: Value) -> Value:
    """A state that each step mixes with what comes in."""
    _, steps, channels = x.dims
    inner, outer = m.weights(channels, channels), m.weights(channels, channels)
    state, states = m.constant(np.zeros((1, channels), np.float32)), []
    for one in m.parts(Unpack(x, num=steps, axis=1)):
        both = m.add(Add(m.layer(one, inner, None), m.layer(state, outer, None)))
        state = m.add(Tanh(both))
        states.append(state)
    m.extras.append(state)
    return m.add(Pack(tuple(states), values_count=steps, axis=1))


def lstm(m: Maker, x: Value) -> Value:
    """UNIDIRECTIONAL_SEQUENCE_LSTM."""
    channels = x.dims[2]
    names = ("input", "forget", "cell", "output")
    operands: dict[str, Any] = {"input": x}
    operands |= {f"input_to_{n}_weights": m.weights(channels, channels) for n in names}
    operands |= {f"recurrent_to_{n}_weights": m.weights(channels, channels) for n in names}
    operands |= {f"{n}_gate_bias": m.constant(m.normal(channels, size=0.3)) for n in names}
    for name in ("output_state", "cell_state"):
        label = f"{name}{len(m.graph.values)}"
        state = m.graph.add_value(Value(label, TensorType.FLOAT32, (1, channels)))
        state.is_variable = True
        operands[name] = state
    return m.add(UnidirectionalSequenceLSTM(**operands, activation=Act.TANH))


def over_time(m: Maker, x: Value) -> Value:
    """A convolution along time, perhaps with holes."""
    _, steps, channels = x.dims
    size = m.count(2, 3)
    layer = Conv2D(
        m.reshape(x, 1, 1, steps, channels),
        m.weights(channels, 1, size, channels),
        m.constant(m.normal(channels, size=0.3)),
        stride_h=1,
        stride_w=1,
        dilation_w_factor=m.count(1, 2),
        activation=m.one_of((Act.NONE, Act.RELU, Act.RELU6)),
    )
    return m.reshape(m.add(layer), 1, steps, channels)


def mixed_steps(m: Maker, x: Value) -> Value:
    """A layer between steps, in place of one between channels."""
    turned = m.add(Transpose(x, m.ints(0, 2, 1)))
    return m.add(Transpose(m.activated(m.dense(turned, x.dims[1])), m.ints(0, 2, 1)))


BLOCKS = (
    *(attention, attention, attention, unrolled, simple_recurrence, lstm, over_time, mixed_steps),
)
PLAIN = (unrolled, simple_recurrence, lstm, over_time, mixed_steps)
"""Of operators that have a C form."""


def flattened(m: Maker, x: Value) -> Value:
    """One row of channels: the mean or the largest of all steps, or the last one."""
    _, steps, channels = x.dims
    kind = m.count(0, 3)
    if kind == 0:
        kinds = (Mean,) if m.plain else (Mean, ReduceMax)
        return m.add(m.one_of(kinds)(x, m.ints(1), keep_dims=False))
    if kind == 1:
        return m.add(Reshape(x, m.ints(1, steps * channels), new_shape=(1, steps * channels)))
    if kind == 2:
        return m.parts(Unpack(x, num=steps, axis=1))[-1]
    begin, end, one = m.ints(0, -1, 0), m.ints(1, 0, channels), m.ints(1, 1, 1)
    return m.add(StridedSlice(x, begin, end, one, shrink_axis_mask=2))


def words(m: Maker) -> Value:
    """Rows of an embedding, picked by an input of numbers."""
    steps, channels = m.count(3, 6), m.count(2, 4) * 2
    table = m.constant(m.normal(WORDS, channels))
    if m.chance(0.6):
        rows = m.add(Gather(table, m.input((1, steps), TensorType.INT32), axis=0))
        return m.add(Add(rows, m.constant(m.normal(steps, channels))))
    numbers = m.reshape(m.input((1, steps), TensorType.INT32), steps)
    return m.reshape(m.add(EmbeddingLookup(numbers, table)), 1, steps, channels)
