"""Networks that tests of the quantizer share."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Graph, Model, Op, Signature, Value
from luciole.ir.ops.activations import Logistic, Relu, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Sin
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.schema.enums import ActivationFunctionType, Padding
from luciole.schema.enums import ActivationFunctionType as Act
from tests.networks import dense, network, random


class Builder:
    """Appends operators with names and random weights to a graph."""

    def __init__(self) -> None:
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))
        self.number = 0

    def add(self, op: Op) -> Value:
        self.number += 1
        return self.graph.append(op, f"t{self.number}").output

    def constant(self, array: Array) -> Value:
        self.number += 1
        return self.graph.add_constant(f"c{self.number}", array)

    def weights(self, *shape: int) -> Value:
        self.number += 1
        fan = np.float32(np.prod(shape[1:])) ** np.float32(-0.5)
        return self.constant(random(self.number, *shape) * fan)


def images() -> Model:
    """Convolutions, a depthwise one, branches that are added, multiplied and joined, an answer."""
    b = Builder()
    x = b.graph.add_input("x", (1, 8, 8, 3))
    y = b.add(
        Conv2D(x, b.weights(8, 3, 3, 3), b.weights(8), stride_h=1, stride_w=1, activation=Act.RELU6)
    )
    d = b.add(
        DepthwiseConv2D(
            y,
            b.weights(1, 3, 3, 8),
            b.weights(8),
            stride_h=1,
            stride_w=1,
            depth_multiplier=1,
            activation=Act.RELU,
        )
    )
    e = b.add(Conv2D(d, b.weights(8, 1, 1, 8), None, stride_h=1, stride_w=1))
    total = b.add(Add(e, y))
    gate = b.add(
        Logistic(b.add(Conv2D(y, b.weights(8, 1, 1, 8), b.weights(8), stride_h=1, stride_w=1)))
    )
    scaled = b.add(Mul(total, gate))
    pools = [
        b.add(
            kind(
                scaled,
                padding=Padding.VALID,
                stride_w=2,
                stride_h=2,
                filter_width=2,
                filter_height=2,
            )
        )
        for kind in (MaxPool2D, AveragePool2D)
    ]
    joined = b.add(Concatenation(tuple(pools), axis=3))
    flat = b.add(Reshape(joined, b.constant(np.array([-1, 256], np.int32)), new_shape=(-1, 256)))
    hidden = b.add(Tanh(b.add(FullyConnected(flat, b.weights(12, 256), b.weights(12)))))
    b.graph.outputs = [
        b.add(Softmax(b.add(FullyConnected(hidden, b.weights(5, 12), None)), beta=1.0))
    ]
    return b.model


def with_sine() -> Model:
    """An operator without a form on integers between two layers."""
    b = Builder()
    x = b.graph.add_input("x", (1, 6))
    y = b.add(FullyConnected(x, b.weights(7, 6), b.weights(7)))
    b.graph.outputs = [b.add(FullyConnected(b.add(Sin(y)), b.weights(4, 7), b.weights(4)))]
    return b.model


SIZES = np.geomspace(0.1, 10, 16, dtype=np.float32)
X = random(50, 400, 20)


def uneven(between: type[Op] | None = Relu) -> Model:
    """fc1, an activation, fc2; what fc1's outputs are larger by, fc2's weights are smaller by."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    first = dense(graph, graph.add_input("x", (1, 20)), (16, 20), "fc1", seed=10)
    scale(first, SIZES)
    y = first.output if between is None else graph.append(between(first.output), "act1").output
    last = dense(graph, y, (4, 16), "fc2", seed=20)
    assert last.weights.data is not None
    last.weights.set_data(last.weights.data / SIZES)
    graph.outputs = [last.output]
    return model


def scale(op: FullyConnected, sizes: Array) -> None:
    for value in (op.weights, op.bias):
        assert value is not None
        assert value.data is not None
        value.set_data(value.data * sizes.reshape(-1, *[1] * (value.data.ndim - 1)))


RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6


def classifier() -> Model:
    """fc1, tanh, fc2, softmax 'answer', with a signature."""
    model = network()
    graph = model.graph
    graph.append(Softmax(graph.outputs[0], beta=1.0), "answer")
    graph.outputs = [graph.values[-1]]
    model.signatures = [
        Signature("serve", graph, [("a", graph.inputs[0])], [("b", graph.outputs[0])])
    ]
    return model


def conv(
    graph: Graph,
    x: Value,
    sizes: tuple[int, int, int],
    name: str,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> Value:
    """Append a convolution of ``sizes`` (outputs, kernel extent, depth) with random weights."""
    o, k, depth = sizes
    seed = sum(name.encode())
    f = graph.add_constant(f"{name}/filter", random(seed, o, k, k, depth) / (k * k * depth) ** 0.5)
    b = graph.add_constant(f"{name}/bias", random(seed + 1, o))
    op = Conv2D(x, f, b, stride_h=1, stride_w=1, activation=activation)
    return graph.append(op, name).output


def residual() -> Model:
    """stem, body, then large(body) + shortcut(stem) = 'sum', a dense layer and a softmax."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    stem = conv(graph, graph.add_input("x", (1, 8, 6, 3)), (4, 3, 3), "stem", RELU)
    body = conv(graph, stem, (5, 3, 4), "body", RELU6)
    large = conv(graph, body, (6, 3, 5), "large")
    shortcut = conv(graph, stem, (6, 1, 4), "shortcut")
    total = graph.append(Add(large, shortcut, activation=RELU), "sum").output
    extents = graph.add_constant("extents", np.array([-1, 288], np.int32))
    flat = graph.append(Reshape(total, extents, new_shape=(-1, 288)), "flat").output
    logits = dense(graph, flat, (4, 288), "logits").output
    graph.outputs = [graph.append(Softmax(logits, beta=1.0), "answer").output]
    return model


def twice() -> Model:
    """Two steps with the same weights and bias, a TANH between, and a layer of its own."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    first = dense(graph, graph.add_input("x", (1, 20)), (20, 20), "step1")
    hidden = graph.append(Tanh(first.output), "hidden").output
    second = FullyConnected(hidden, first.weights, first.bias, activation=RELU)
    graph.outputs = [dense(graph, graph.append(second, "step2").output, (4, 20), "answer").output]
    return model


def spoiled() -> Model:
    """The same function, but 4 bits cannot hold what t13 multiplies with: half of what it reads is
    64 times as large, and what it multiplies that with so much smaller.
    """
    model = images()
    by_name = {op.name: op for op in model.graph.ops}
    factors = np.where(np.arange(8) < 4, 1, 64).astype(np.float32)
    front, back = by_name["t10"], by_name["t13"]
    for op, slot, factor in ((front, 1, factors), (front, 2, factors), (back, 1, 1 / factors)):
        value = op.operands[slot]
        assert value is not None
        assert value.data is not None
        op.set_operand(slot, model.graph.add_constant(f"{value.name}/uneven", value.data * factor))
    return model
