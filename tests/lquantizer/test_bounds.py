"""What tensors can hold, whatever a network is fed: bounds hold, and layers reach them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Value
from luciole.ir.ops.activations import Logistic, Relu, Relu6, Tanh
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Maximum, Mul, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Abs, Exp, Sqrt, Square
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reduce import Mean, Sum
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer.network.bounds import highest, intervals_of
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.lquantizer.networks import Builder
from tests.networks import random

LAST = np.array([1], np.int32)


def many(b: Builder, x: Value) -> list[Value]:
    """Tensors that a bound is known of, and some that none is."""
    half = b.constant(np.array([0.5], np.float32))
    cut, size = b.add(Relu6(x)), b.add(Abs(x))
    layer = FullyConnected(cut, b.weights(8, 8), b.constant(random(3, 8)), activation=Act.RELU6)
    plain = FullyConnected(b.add(layer), b.weights(8, 8))
    values = [cut, size, layer.output, b.add(plain)]
    unary = [Relu(x), Tanh(x), Logistic(x), Softmax(x, beta=1.0), Exp(x), Square(x), Sqrt(size)]
    values += [b.add(op) for op in unary]
    values += [b.add(op) for op in (Add(cut, half), Add(x, half), Mul(x, x), Mul(cut, half))]
    values += [b.add(op) for op in (Maximum(x, half), Sub(x, half), SquaredDifference(x, half))]
    values += [b.add(Mean(size, b.constant(LAST))), b.add(Sum(cut, b.constant(LAST)))]
    values.append(b.add(Sum(x, b.constant(LAST))))
    pads = b.constant(np.array([[0, 0], [1, 2]], np.int32))
    values.append(b.add(Pad(b.add(Add(cut, half)), pads)))
    shape = b.constant(np.array([2, 4], np.int32))
    return [*values, b.add(Reshape(cut, shape))]


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 30.0])
def test_bounds_hold(size: float) -> None:
    b = Builder()
    b.graph.outputs = many(b, b.graph.add_input("x", (1, 8)))
    intervals = intervals_of(b.graph)
    interpreter = luciole.Interpreter(b.model)
    for seed in range(20):
        results = interpreter.run({"x": random(seed, 1, 8) * np.float32(size)})
        for value in b.graph.outputs:
            low, high = intervals[value]
            found = results[value.name]
            assert low - 1e-5 <= found.min()
            assert found.max() <= high + 1e-5


def test_bounds_are_known_where_something_bounds() -> None:
    b = Builder()
    values = many(b, b.graph.add_input("x", (1, 8)))
    intervals = intervals_of(b.graph)
    cut, size, layer, plain = (intervals[value] for value in values[:4])
    assert (cut, size, layer) == ((0, 6), (0, np.inf), (0, 6))
    assert np.isfinite(plain).all()
    assert [intervals[v] for v in values[4:6]] == [(0, np.inf), (-1, 1)]
    assert all(intervals[value][0] > 0 for value in values[6:9])  # LOGISTIC, SOFTMAX, EXP


@pytest.mark.parametrize("depthwise", [True, False])
def test_the_highest_outputs_of_a_layer_are_reached(depthwise: bool) -> None:
    """By the inputs that are best for each, those of 0 and 6 that a RELU6 can give."""
    b = Builder()
    x = b.graph.add_input("x", (1, 3, 3, 4))
    cut, bias = b.add(Relu6(x)), b.constant(random(1, 4))
    steps: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": Padding.VALID}
    op: Conv2D | DepthwiseConv2D
    if depthwise:
        op = DepthwiseConv2D(
            cut, b.constant(random(2, 1, 3, 3, 4)), bias, depth_multiplier=1, **steps
        )
        taps = np.moveaxis(random(2, 1, 3, 3, 4), 3, 0)
        masks = np.zeros((4, 3, 3, 4), np.float32)
        for channel in range(4):
            masks[channel, :, :, channel] = taps[channel, 0] > 0
    else:
        op = Conv2D(cut, b.constant(random(2, 4, 3, 3, 4)), bias, **steps)
        masks = (random(2, 4, 3, 3, 4) > 0).astype(np.float32)
    b.graph.outputs = [b.add(op)]
    bound = highest(op, intervals_of(b.graph))
    interpreter = luciole.Interpreter(b.model)
    for channel, mask in enumerate(masks):
        (y,) = interpreter.run({"x": mask[None] * 100}).values()
        assert y[0, 0, 0, channel] == pytest.approx(bound[channel], rel=1e-5)


def test_nothing_is_known_of_a_layer_on_an_input() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4))
    weights = random(1, 3, 4)
    weights[1] = 0
    op = FullyConnected(x, b.constant(weights), b.constant(np.array([1, 2, 3], np.float32)))
    b.graph.outputs = [b.add(op)]
    np.testing.assert_array_equal(highest(op, intervals_of(b.graph)), [np.inf, 2, np.inf])
