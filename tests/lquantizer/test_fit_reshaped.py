"""Layers whose first axis holds several rows or images of each record."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import first_output
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reshape import Reshape
from tests.networks import dense, random


def reshape(graph: Graph, x: Value, shape: tuple[int, ...], name: str) -> Value:
    extents = graph.add_constant(f"{name}/shape", np.array(shape, np.int32))
    return graph.append(Reshape(x, extents, new_shape=shape), name).output


def tokens(batch: int | None) -> Model:
    """Four tokens of each record as rows of their own between two RESHAPEs."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (batch, 4, 6))
    y = dense(graph, x, (8, 6), "fc1", keep_num_dims=True).output
    y = graph.append(Tanh(reshape(graph, y, (-1, 8), "rows")), "squashed").output
    y = dense(graph, y, (8, 8), "fc2", seed=5).output
    y = graph.append(Tanh(reshape(graph, y, (-1, 32), "flat")), "again").output
    graph.outputs = [dense(graph, y, (3, 32), "fc3", seed=7).output]
    return model


def frames(batch: int | None) -> Model:
    """Three images of each record, convolved one by one, and one constant image added to each."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (batch, 3, 5, 4, 2))
    y = graph.append(Tanh(reshape(graph, x, (-1, 5, 4, 2), "images")), "squashed").output
    f = graph.add_constant("f", random(2, 3, 3, 3, 2))
    y = graph.append(Conv2D(y, f, None, stride_h=1, stride_w=1), "conv").output
    still = graph.append(Tanh(graph.add_constant("c", random(4, 1, 5, 4, 3))), "still").output
    y = graph.append(Add(y, still), "sum").output
    graph.outputs = [reshape(graph, y, (-1, 3, 60), "answer")]
    return model


def error(model: Model, other: Model, x: Array) -> float:
    outputs = [first_output(m, {"x": x}) for m in (model, other)]
    return float(np.mean((outputs[0] - outputs[1]) ** 2) / np.var(outputs[0]))


@pytest.mark.parametrize("batch", [1, None])
@pytest.mark.parametrize("records", [1, 3, 100])
def test_rows_between_reshapes(batch: int | None, records: int) -> None:
    model = tokens(batch)
    result = luciole.quantize(model, random(3, records, 4, 6), encode_bits=4, proof=False)
    assert [r.skipped for r in result.report.layers] == [None] * 3
    if records > 50:
        assert error(model, result.model, random(4, 20, 4, 6)) < 0.1


@pytest.mark.parametrize("batch", [1, None])
@pytest.mark.parametrize("records", [2, 40])
def test_images_between_reshapes(batch: int | None, records: int) -> None:
    model = frames(batch)
    data = random(3, records, 3, 5, 4, 2)
    result = luciole.quantize(model, data, encode_bits=4, all_layers=True, proof=False)
    assert [r.skipped for r in result.report.layers] == [None]
    if records > 20:
        assert error(model, result.model, random(4, 10, 3, 5, 4, 2)) < 0.05
