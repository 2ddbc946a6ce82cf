"""LSTMs whose weights alone are integers: their kernels round what meets them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from tests.support import data_path

SCHEMES = ["dynamic", "uint8", "int16x8"]


def digits(count: int) -> Array:
    with np.load(data_path("mnist.npz")) as data:
        return np.asarray(data["x_test"][:count] / 255, np.float32).reshape(count, 28, 28)


@pytest.fixture(scope="module")
def model() -> Model:
    return luciole.load(data_path("models/mnist_lstm_fp32.tflite"))


@cache
def made(scheme: str) -> luciole.Result:
    """The network in a scheme, once for all tests."""
    model = luciole.load(data_path("models/mnist_lstm_fp32.tflite"))
    data = None if scheme == "dynamic" else digits(30)
    return luciole.quantize(model, data, scheme=scheme, proof=False)


def answers(model: Model, x: Array) -> Array:
    found: list[Array] = []
    interpreter = luciole.Interpreter(model)
    interpreter.allocate_tensors()
    for one in x:
        interpreter.reset_all_variables()
        found += interpreter.run({model.graph.inputs[0].name: one[None]}).values()
    return np.concatenate(found)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_integers_and_answers_stay(model: Model, scheme: str) -> None:
    result = made(scheme)
    (lstm,) = [op for op in result.model.graph.ops if isinstance(op, UnidirectionalSequenceLSTM)]
    named = {name: v.dtype for name, v in lstm.named_operands() if v is not None}
    weights = {dtype for name, dtype in named.items() if "_to_" in name}
    assert weights == {TensorType.INT8}
    assert named["forget_gate_bias"] == TensorType.FLOAT32
    x = digits(200)[100:]
    before, after = answers(model, x), answers(result.model, x)
    assert (before.argmax(1) == after.argmax(1)).mean() >= 0.99
    assert result.report.bytes_after < 0.34 * result.report.bytes_before


def test_the_reason_is_listed() -> None:
    (text,) = made("int16x8").report.floats
    assert text.startswith("UNIDIRECTIONAL_SEQUENCE_LSTM")
    assert text.endswith("it has state, and no kernel on INT16; its weights are integers")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_litert_computes_the_same(scheme: str) -> None:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    result = made(scheme).model
    peer = Interpreter(
        model_content=to_bytes(result, "tflite"),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    peer.allocate_tensors()
    x = digits(8)
    for one, ours in zip(x, answers(result, x), strict=True):
        peer.reset_all_variables()
        peer.set_tensor(peer.get_input_details()[0]["index"], one[None])
        peer.invoke()
        theirs = peer.get_tensor(peer.get_output_details()[0]["index"])[0]
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_explicit_weights_of_an_lstm_stay_float(model: Model) -> None:
    result = luciole.quantize(model, scheme="weights", proof=False).model
    (lstm,) = [op for op in result.graph.ops if isinstance(op, UnidirectionalSequenceLSTM)]
    assert lstm.input_to_cell_weights.dtype == TensorType.FLOAT32
