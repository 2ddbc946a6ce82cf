"""Networks whose channels differ in size, and their answers."""

from __future__ import annotations

from typing import Any

import numpy as np

import luciole
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.schema.enums import ActivationFunctionType as Act
from tests.networks import random

CHANNELS = 16
UNEVEN = 2.0 ** np.random.default_rng(1).integers(-6, 1, CHANNELS).astype(np.float32)
"""What channels are multiplied by where they are made."""


def network(activation: Act, uneven: bool) -> Model:
    """A convolution, a depthwise one and a pointwise one. In float they do the same whether or not
    channels are uneven, as long as none reaches what cuts it off.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6, 6, 3))
    scale = UNEVEN if uneven else np.ones(CHANNELS, np.float32)

    def constant(name: str, array: Array) -> Value:
        return graph.add_constant(name, array.astype(np.float32))

    first = random(1, CHANNELS, 3, 3, 3) / 9 * scale.reshape(-1, 1, 1, 1)
    bias = np.abs(random(2, CHANNELS)) / 4 * scale
    steps: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "activation": activation}
    y = graph.append(Conv2D(x, constant("w1", first), constant("b1", bias), **steps), "y1").output
    taps = random(3, 1, 3, 3, CHANNELS) / 3 / scale * scale[::-1]
    op = DepthwiseConv2D(y, constant("w2", taps), None, depth_multiplier=1, **steps)
    y = graph.append(op, "y2").output
    last = random(4, 5, 1, 1, CHANNELS) / 4 / scale[::-1]
    op2 = Conv2D(y, constant("w3", last), constant("b3", random(5, 5)), stride_h=1, stride_w=1)
    graph.outputs = [graph.append(op2, "y3").output]
    return model


def records(seed: int = 3, count: int = 64) -> dict[str, Array]:
    return {"x": random(seed, count, 6, 6, 3)}


def answers(model: Model) -> Array:
    return outputs_of(luciole.Interpreter(model), records(9))["y3"]
