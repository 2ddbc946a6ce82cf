"""Which layers are the first and the last of a network, whatever stands between them and its ends,
and what quantizers make of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.ir.analysis.ends import is_first, is_last
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quantization import is_affine
from luciole.lquantizer import Config
from luciole.lquantizer.network.layers import find_groups
from luciole.schema.enums import Padding
from tests.lquantizer.networks import Builder
from tests.lquantizer.runs import QUICK
from tests.networks import random

End = Callable[[Builder, Value], Value]


def same(b: Builder, x: Value) -> Value:
    return x


def turned(b: Builder, x: Value) -> Value:
    return b.add(Transpose(x, b.constant(np.array([0, 2, 3, 1], np.int32))))


def normalized(b: Builder, x: Value) -> Value:
    scaled = b.add(Mul(x, b.constant(np.array([0.5], np.float32))))
    return b.add(Add(scaled, b.constant(np.array([-0.1], np.float32))))


def padded(b: Builder, x: Value) -> Value:
    return b.add(Pad(x, b.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))))


def logistic(b: Builder, x: Value) -> Value:
    return b.add(Logistic(x))


def tanh(b: Builder, x: Value) -> Value:
    return b.add(Tanh(x))


def reshaped(b: Builder, x: Value) -> Value:
    return b.add(Reshape(x, b.constant(np.array([1, -1], np.int32))))


def mean(b: Builder, x: Value) -> Value:
    return b.add(Softmax(b.add(Mean(x, b.constant(np.array([1, 2], np.int32))))))


FRONTS = [same, turned, normalized, padded]
BACKS = [same, logistic, tanh, reshaped, mean]


def conv(b: Builder, x: Value, *filters: int) -> Value:
    weights, bias = b.weights(*filters), b.constant(random(filters[0], filters[0]))
    return b.add(Conv2D(x, weights, bias, stride_h=1, stride_w=1, padding=Padding.SAME))


def network(front: End, back: End) -> Model:
    """Three convolutions, the widest in the middle."""
    b = Builder()
    x = front(b, b.graph.add_input("x", (1, 6, 6, 6)))
    y = conv(b, conv(b, x, 32, 1, 1, 6), 32, 5, 5, 32)
    b.graph.outputs = [back(b, conv(b, y, 2, 1, 1, 32))]
    return b.model


def layers(model: Model) -> list[Op]:
    return [op for op in model.graph.ops if has_weights(op)]


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("back", BACKS)
def test_no_layer_lies_between_the_ends_and_the_first_and_last(front: End, back: End) -> None:
    found = layers(network(front, back))
    assert [is_first(op) for op in found] == [True, False, False]
    assert [is_last(op) for op in found] == [False, False, True]


@pytest.mark.parametrize("front", FRONTS)
def test_the_first_convolution_is_spared_whatever_is_in_front(front: End) -> None:
    model = network(front, same)
    first, middle, last = (op.name for op in layers(model))
    groups, skipped = find_groups(model.graph, Config())
    assert [group.name for group in groups] == [middle, last]
    assert skipped[first].startswith("the first convolution")


@pytest.mark.parametrize(("front", "back"), [(turned, logistic), (normalized, reshaped)])
def test_small_layers_at_the_ends_keep_8_bits_whatever_is_beyond(front: End, back: End) -> None:
    model = network(front, back)
    made = luciole.quantize(model, random(1, 20, 6, 6, 6), scheme="w4a8", **QUICK).model
    weights = [weight_constant(op) for op in layers(made)]
    types = [None if value is None else value.dtype for value in weights]
    assert types == [TensorType.INT8, TensorType.INT4, TensorType.INT8]


def test_a_layer_beside_which_another_one_reaches_the_end_is_not_at_it() -> None:
    """Two convolutions whose results are added, and one whose own result is an output."""
    b = Builder()
    x = b.graph.add_input("x", (1, 4, 4, 4))
    first = conv(b, x, 4, 1, 1, 4)
    second = conv(b, b.add(Add(first, x)), 4, 1, 1, 4)
    third = conv(b, second, 4, 1, 1, 4)
    b.graph.outputs = [b.add(Add(second, third)), first]
    found = layers(b.model)
    assert [is_first(op) for op in found] == [True, False, False]
    assert [is_last(op) for op in found] == [True, False, True]


X = random(1, 60, 6, 16)


def attention() -> Model:
    """A dense layer for each of three operands, two products of these, and a last layer."""
    b = Builder()
    x = b.graph.add_input("x", (1, 6, 16))
    query, key, value = (
        b.add(FullyConnected(x, b.weights(16, 16), keep_num_dims=True)) for _ in range(3)
    )
    shares = b.add(Softmax(b.add(BatchMatMul(query, key, adjoint_rhs=True)), beta=1.0))
    mixed = b.add(BatchMatMul(shares, value))
    last = b.add(FullyConnected(mixed, b.weights(16, 16), keep_num_dims=True))
    b.graph.outputs = [last]
    return b.model


def of_products(model: Model) -> list[set[bool]]:
    """Whether what each BATCH_MATMUL reads and gives are integers."""
    return [
        {is_affine(value) for value in (*op.operands, *op.results) if value is not None}
        for op in model.graph.ops
        if isinstance(op, BatchMatMul)
    ]


def answers(model: Model, x: Array) -> Array:
    interpreter = luciole.Interpreter(model)
    runs = (interpreter.run({"x": row[None]}) for row in x)
    return np.concatenate([next(iter(run.values())) for run in runs])


@cache
def quantized_attention(spared: str) -> luciole.Result:
    choices: dict[str, Any] = {"encode_bits": 4, "spared": spared}
    return luciole.quantize(attention(), X, proof=False, **choices)


@pytest.mark.parametrize("spared", ["float", "dynamic", "int8", "int16x8"])
def test_products_of_attention_become_what_spared_says(spared: str) -> None:
    model = attention()
    result = quantized_attention(spared)
    are_integers = spared in ("int8", "int16x8")
    assert of_products(result.model) == [{are_integers}] * 2
    left = [name for names in result.report.left_alone().values() for name in names]
    assert len(left) == (0 if are_integers else 2)
    wanted, found = answers(model, X), answers(result.model, X)
    floats = answers(quantized_attention("float").model, X)
    error = np.square(found - wanted).mean()
    assert error < 1.2 * np.square(floats - wanted).mean()


def test_products_that_a_config_makes_integers_are_not_said_to_be_left_alone() -> None:
    rules = {"layers": [{"operator": "BATCH_MATMUL", "scheme": "int8"}]}
    result = luciole.quantize(attention(), X[:20], encode_bits=4, config=rules, proof=False)
    assert of_products(result.model) == [{True}] * 2
    assert result.report.left_alone() == {}
