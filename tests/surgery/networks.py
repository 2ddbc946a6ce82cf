"""A small network with a branch, whose tensors have short names."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Graph, Model, Op, Signature, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.value import Buffer
from luciole.schema.enums import Padding
from tests.networks import dense, random


def residual(size: int = 8) -> Model:
    """conv -> pool -> inner -> sum (with pool) -> rows -> logits, of images of ``size`` pixels."""
    model = Model(description="with a branch")
    graph = model.add_graph(Graph("main"))
    image = graph.add_input("image", (1, size, size, 3))
    conv = _conv(graph, image, "conv", 3)
    pool = graph.append(_pool(conv), "pool").output
    inner = _conv(graph, pool, "inner", 4)
    total = graph.append(Add(pool, inner), "sum").output
    shape = graph.add_constant("rows/shape", np.array([-1, size * size], np.int32))
    rows = graph.append(Reshape(total, shape), "rows").output
    logits = dense(graph, rows, (5, size * size), "logits").output
    graph.outputs = [logits]
    model.signatures = [Signature("serve", graph, [("pixels", image)], [("scores", logits)])]
    note = Buffer(np.frombuffer(b"a note", np.uint8))
    model.buffers.append(note)
    model.metadata = [("note", note), ("TFLITE_METADATA", note)]
    return model


def _conv(graph: Graph, x: Value, name: str, channels: int) -> Value:
    weights = graph.add_constant(f"{name}/filter", random(len(name), 4, 3, 3, channels))
    bias = graph.add_constant(f"{name}/bias", random(7, 4))
    op = Conv2D(x, weights, bias, padding=Padding.SAME, stride_h=1, stride_w=1)
    return graph.append(op, name).output


def _pool(x: Value) -> Op:
    return MaxPool2D(
        x, padding=Padding.VALID, stride_h=2, stride_w=2, filter_height=2, filter_width=2
    )


def pixels(count: int = 1, size: int = 8) -> Array:
    """Some images."""
    return random(3, count, size, size, 3)
