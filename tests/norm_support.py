"""A small convolutional network whose batch normalizations were not folded."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.softmax import Softmax

SIDE, CHANNELS, CLASSES = 6, 4, 3


def images(seed: int, count: int) -> Array:
    """Random images [count, 6, 6, 2]."""
    made = np.random.default_rng(seed).normal(size=(count, SIDE, SIDE, 2))
    return made.astype(np.float32)


class Made:
    """A network in the making."""

    def __init__(self) -> None:
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))
        self.rng = np.random.default_rng(3)
        self.end = self.graph.add_input("x", (1, SIDE, SIDE, 2))

    def constant(self, name: str, *shape: int, middle: float = 0.0) -> Value:
        numbers = middle + self.rng.normal(size=shape) / float(np.prod(shape[1:])) ** 0.5
        return self.graph.add_constant(name, numbers.astype(np.float32))

    def normalized(self, kind: type[Conv2D] | type[DepthwiseConv2D], name: str) -> None:
        """Append a convolution, a MUL, an ADD and a RELU."""
        inputs = self.end.shape[-1] or 1
        shape = (CHANNELS, 3, 3, inputs) if kind is Conv2D else (1, 3, 3, inputs)
        bias = self.constant(f"{name}/bias", CHANNELS)
        conv = kind(self.end, self.constant(f"{name}/filter", *shape), bias)
        conv.stride_h = conv.stride_w = 1
        if isinstance(conv, DepthwiseConv2D):
            conv.depth_multiplier = 1
        self.append(conv, name)
        self.append(
            Mul(self.end, self.constant(f"{name}/scale", CHANNELS, middle=2.0)), f"{name}/mul"
        )
        self.append(Add(self.end, self.constant(f"{name}/shift", CHANNELS)), f"{name}/add")
        self.append(Relu(self.end), f"{name}/relu")

    def append(self, op: object, name: str) -> None:
        self.graph.append(op, name)  # type: ignore[arg-type]  # every caller has an operator
        self.end = self.graph.ops[-1].results[0]


def unfolded(depthwise: bool = True) -> Model:
    """conv, depthwise where wanted (both normalized), average pool, dense, softmax."""
    made = Made()
    made.normalized(Conv2D, "conv")
    if depthwise:
        made.normalized(DepthwiseConv2D, "depthwise")
    pool = AveragePool2D(made.end)
    pool.stride_h = pool.stride_w = pool.filter_height = pool.filter_width = SIDE
    made.append(pool, "pool")
    weights, bias = (
        made.constant("dense/weights", CLASSES, CHANNELS),
        made.constant("dense/b", CLASSES),
    )
    made.append(FullyConnected(made.end, weights, bias), "dense")
    softmax = Softmax(made.end)
    softmax.beta = 1.0
    made.append(softmax, "softmax")
    made.graph.outputs = [made.end]
    return made.model
