"""Shapes of LQ_FULLY_CONNECTED, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import LucioleError, ShapeError, TensorType
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lq_support import Layer, random_input, random_layer
from tests.support import one_op


def test_the_result_has_the_inputs_leading_axes() -> None:
    layer = random_layer(40, 7, 2, 3)
    assert layer.model(random_input((2, 3, 40))).graph.outputs[0].shape == (2, 3, 7)
    model = layer.model(random_input((1, 40)))
    model.graph.inputs[0].shape = (None, 40)
    assert model.graph.ops[0].infer_shape() == (None, 7)
    assert model.graph.outputs[0].dtype == TensorType.FLOAT32


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_a_layer_without_outputs_gives_nothing_to_any_number_of_threads(rows: int) -> None:
    x = random_input((rows, 40))
    model = random_layer(40, 0, 8, 4).model(x)
    assert Interpreter(model, num_threads=3).run(x)["y0"].shape == (rows, 0)


def changed(**arrays: Any) -> Layer:
    """A layer [o = 7, kw = 3, n = 40] with some arrays replaced."""
    return replace(random_layer(40, 7, 2, 3), **arrays)


@pytest.mark.parametrize(
    ("layer", "shape", "sentence"),
    [
        (changed(), (1, 41), "last axis: input has 41, weights has 40"),
        (changed(), (), "last axis: input has 1, weights has 40"),
        (changed(input_scales=np.ones((1, 2), np.float32)), (1, 40), "input_scales has shape"),
        (changed(input_scales=np.ones(9, np.float32)), (1, 40), "9 input bits, 1 to 8 are"),
        (changed(input_scales=np.ones(0, np.float32)), (1, 40), "0 input bits, 1 to 8 are"),
        (changed(weights_scales=np.ones(7, np.float32)), (1, 40), "weights_scales has shape"),
        (changed(weights_scales=np.ones((7, 5), np.float32)), (1, 40), "5 weight bits, 1 to 4"),
        (changed(weights_scales=np.ones((7, 2), np.float32)), (1, 40), "weight bits: "),
        (changed(weights_scales=np.ones((6, 3), np.float32)), (1, 40), "outputs: weights_binary"),
        (changed(bias=np.ones(6, np.float32)), (1, 40), "outputs: bias has 6, weights_scales has"),
        (changed(bias=np.ones((1, 7), np.float32)), (1, 40), "bias has shape"),
        (changed(weights_offsets=np.ones(8, np.float32)), (1, 40), "outputs: weights_offsets"),
    ],
)
def test_lq_fully_connected_refuses_operands_that_do_not_fit(
    layer: Layer, shape: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ShapeError, match=sentence):
        layer.model(np.zeros(shape, np.float32))


@pytest.mark.parametrize("hidden_size", [72, 96, 0, -1])
def test_lq_fully_connected_refuses_words_that_do_not_fit_the_size(hidden_size: int) -> None:
    operands = random_layer(40, 7, 2, 3).operands(np.zeros((1, 40), np.float32))
    with pytest.raises(ShapeError, match=f"words: weights_binary has 2, hidden_size {hidden_size}"):
        one_op(LQFullyConnected, operands, (1, 2, 3), hidden_size=hidden_size)


def test_verify_refuses_a_size_below_one() -> None:
    op = random_layer(40, 7, 2, 3).model(random_input((1, 40))).graph.ops[0]
    assert list(op.verify()) == []
    op.hidden_size = 0  # type: ignore[attr-defined]  # the operator's own attribute
    assert list(op.verify()) == ["hidden_size is 0, it must be at least 1"]


def test_running_refuses_an_activation_without_kernel() -> None:
    layer = replace(random_layer(40, 2, 2, 2), activation=Act.SIGN_BIT)
    x = random_input((1, 40))
    with pytest.raises(LucioleError, match=r"LQFullyConnected 'y0': .*SIGN_BIT is not supported"):
        Interpreter(layer.model(x)).run(x)
