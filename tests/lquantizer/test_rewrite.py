"""A dense layer becomes LQ_FULLY_CONNECTED: names, users, outputs, shapes, numbers."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Shape, Value, learned_levels
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.verify import Severity, verify
from luciole.lquantizer.calibration.rows import weight_rows
from luciole.lquantizer.rewrite.learned_levels import (
    LearnedParameters,
    finish,
    nearest_codes,
    replace_layers,
)
from luciole.schema.enums import ActivationFunctionType
from tests.networks import dense, encode_weights, network, random, value_named

INPUT_BASIS = np.array([1.0, 0.5, 0.25])
LEVELS = np.sort(learned_levels.sign_codes(3) @ INPUT_BASIS).astype(np.float32)


def replace_layer(
    op: FullyConnected, input_basis: Array, basis: Array
) -> tuple[LQFullyConnected, Value]:
    """Each weight takes its nearest level."""
    codes = nearest_codes(weight_rows(op), basis.astype(np.float32))
    ((new, result),) = replace_layers([op], LearnedParameters(input_basis, basis, codes))
    assert isinstance(new, LQFullyConnected)
    return new, result


def weight_basis(outputs: int) -> Array:
    return np.abs(random(3, outputs, 2)).astype(np.float64)


def layer(model: Model, name: str) -> FullyConnected:
    producer = value_named(model, name).producer
    assert producer is not None
    assert isinstance(producer.op, FullyConnected)
    return producer.op


def one_layer(shape: Shape, n: int, keep_num_dims: bool = False) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = dense(graph, graph.add_input("x", shape), (6, n), "fc", keep_num_dims=keep_num_dims)
    graph.outputs = [op.output]
    return model


def with_nearest_weights(model: Model, name: str, basis: Array) -> None:
    """Give a float layer the very weights that its quantized form will have."""
    weights = layer(model, name).weights
    assert weights.data is not None
    words = encode_weights(weights.data, basis.astype(np.float32))
    values = learned_levels.decode(words, basis.astype(np.float32), weights.data.shape[1])
    weights.set_data(values.astype(np.float32))


def errors(model: Model) -> list[str]:
    return [str(f) for f in verify(model) if f.severity is Severity.ERROR]


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_weights_take_the_nearest_level_of_their_own_row(bits: int) -> None:
    weights, basis = random(0, 5, 70), np.abs(random(1, 5, bits))
    words = encode_weights(weights, basis)
    assert words.shape == (5, bits, 3)
    found = learned_levels.decode(words, basis, 70)
    for row in range(5):
        every = learned_levels.sign_codes(bits) @ basis[row].astype(np.float64)
        nearest = np.abs(weights[row][:, None] - every).min(1)
        np.testing.assert_allclose(np.abs(weights[row] - found[row]), nearest, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "n", "keep"),
    [
        ((1, 20), 20, False),
        ((1, 20), 20, True),
        ((3, 20), 20, False),
        ((20,), 20, False),
        ((20,), 20, True),
        ((2, 3, 20), 20, False),
        ((2, 3, 20), 20, True),
        ((1, 2, 3, 20), 20, True),
        ((1, 4, 5), 20, False),
        ((2, 2, 5, 2), 20, False),
        ((60,), 20, False),
        ((3, 10), 30, False),
        ((), 1, False),
    ],
)
def test_the_result_keeps_name_shape_and_numbers(shape: Shape, n: int, keep: bool) -> None:
    """Inputs on levels and weights on levels: nothing is lost, so the float layer is the oracle."""
    model = one_layer(shape, n, keep)
    basis = weight_basis(6)
    with_nearest_weights(model, "fc", basis)
    x = np.random.default_rng(5).choice(LEVELS, [n or 1 for n in shape])
    wanted = Interpreter(model).run(x)["fc"]
    old_shape = model.graph.outputs[0].shape
    new, result = replace_layer(layer(model, "fc"), INPUT_BASIS, basis)
    assert isinstance(new, LQFullyConnected)
    assert model.graph.outputs == [result]
    assert (result.name, result.shape) == ("fc", old_shape)
    finish(model)
    assert errors(model) == []
    assert not any(isinstance(op, FullyConnected) for op in model.graph.ops)
    found = Interpreter(model).run(x)["fc"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert found.shape == wanted.shape


@pytest.mark.parametrize("shape", [(None, 20), (None, None), (None, 4, 5), (None, 3, 20)])
def test_open_axes_stay_open(shape: Shape) -> None:
    model = one_layer(shape, 20)
    basis = weight_basis(6)
    with_nearest_weights(model, "fc", basis)
    replaced = model.clone()
    replace_layer(layer(replaced, "fc"), INPUT_BASIS, basis)
    finish(replaced)
    for rows in (1, 7):
        size = [rows, *(20 if n is None else n for n in shape[1:])]
        x = np.random.default_rng(rows).choice(LEVELS, size)
        wanted, found = (Interpreter(m).run(x)["fc"] for m in (model, replaced))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("bias_shape", [(6,), (1, 6), (1, 1, 1, 6), None])
def test_any_bias_of_the_layer_is_kept(bias_shape: tuple[int, ...] | None) -> None:
    model = one_layer((2, 20), 20)
    op = layer(model, "fc")
    if bias_shape is None:
        op.bias = None
    else:
        assert op.bias is not None
        op.bias.make_constant(random(7, *bias_shape))
    basis = weight_basis(6)
    with_nearest_weights(model, "fc", basis)
    x = np.random.default_rng(5).choice(LEVELS, (2, 20))
    wanted = Interpreter(model).run(x)["fc"]
    replace_layer(op, INPUT_BASIS, basis)
    found = Interpreter(model).run(x)["fc"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_users_outputs_and_signatures_follow() -> None:
    model = network()
    graph = model.graph
    hidden, result = value_named(model, "fc1"), value_named(model, "fc2")
    graph.append(Relu(hidden), "other")
    graph.outputs = [result, value_named(model, "other"), hidden]
    for name in ("fc1", "fc2"):
        replace_layer(layer(model, name), INPUT_BASIS, weight_basis(16 if name == "fc1" else 4))
    assert [v.name for v in graph.outputs] == ["fc2", "other", "fc1"]
    assert [v.name for _, v in model.signatures[0].outputs] == ["fc2"]
    assert model.signatures[0].outputs[0][1] is graph.outputs[0]
    users = value_named(model, "fc1").users
    assert sorted(use.op.kind for use in users) == ["RELU", "TANH"]
    assert errors(model) == []


def test_new_tensors_have_names_of_their_own() -> None:
    model = one_layer((2, 3, 20), 20)
    model.graph.add_constant("fc/input_scales", np.zeros(1, np.float32))
    replace_layer(layer(model, "fc"), INPUT_BASIS, weight_basis(6))
    names = [v.name for v in model.graph.values]
    assert len(names) == len(set(names))
    assert {"fc/input_scales_1", "fc/weights_scales", "fc/weights_binary", "fc/lq"} <= set(names)


def test_attributes_and_constants_of_the_new_operator() -> None:
    model = one_layer((1, 20), 20)
    op = layer(model, "fc")
    op.activation = ActivationFunctionType.RELU6
    weights, bias = op.weights.data, op.bias
    assert weights is not None
    basis = weight_basis(6)
    new, _ = replace_layer(op, INPUT_BASIS, basis)
    assert (new.hidden_size, new.activation, new.input_offset) == (
        20,
        ActivationFunctionType.RELU6,
        0.0,
    )
    assert new.bias is bias
    assert new.weights_offsets is None
    scales = basis.astype(np.float32)
    for value, wanted in (
        (new.input_scales, INPUT_BASIS.astype(np.float32)),
        (new.weights_scales, scales),
        (new.weights_binary, encode_weights(weights, scales)),
    ):
        assert value.data is not None
        np.testing.assert_array_equal(value.data, wanted, strict=True)


def test_finish_fuses_activations_and_drops_the_float_weights() -> None:
    model = network()
    for name, outputs in (("fc1", 16), ("fc2", 4)):
        replace_layer(layer(model, name), INPUT_BASIS, weight_basis(outputs))
    finish(model)
    kinds = [(op.kind, op.name) for op in model.graph.ops]
    assert kinds == [("LQ_FULLY_CONNECTED", "act1"), ("LQ_FULLY_CONNECTED", "fc2")]
    assert model.graph.ops[0].attributes()["activation"] == ActivationFunctionType.TANH
    assert not [v.name for v in model.graph.values if v.name.endswith("/weights")]
    largest = max(len(b) for b in model.buffers)
    assert largest < 20 * 16 * 4


def test_layers_that_share_weights_are_replaced_one_by_one() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    first = dense(graph, graph.add_input("x", (1, 8)), (8, 8), "fc1")
    graph.append(FullyConnected(first.output, first.weights, first.bias), "fc2")
    graph.outputs = [graph.values[-1]]
    for name in ("fc1", "fc2"):
        replace_layer(layer(model, name), INPUT_BASIS, weight_basis(8))
    finish(model)
    assert errors(model) == []
    assert [op.kind for op in graph.ops] == ["LQ_FULLY_CONNECTED"] * 2
