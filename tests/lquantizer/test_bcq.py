"""A dense layer becomes BCQ_FULLY_CONNECTED: names, users, outputs, shapes, padding, numbers.

The compiled kernel adds float32 numbers in another order than the product it is compared with: the
results differ by at most 1e-5 of the largest.
"""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Shape, learned_levels
from luciole.ir.analysis.weights import learned_weights
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.verify import Severity, verify
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.rewrite.bcq import replace_layer_bcq
from luciole.lquantizer.rewrite.learned_levels import finish
from luciole.schema.enums import ActivationFunctionType
from tests.networks import dense, encode_weights, network, random, value_named


def weight_basis(outputs: int, bits: int = 2) -> Array:
    return np.abs(random(3, outputs, bits)).astype(np.float64)


def one_layer(shape: Shape, n: int, keep_num_dims: bool = False, bias: bool = True) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", shape)
    op = dense(graph, x, (6, n), "fc", keep_num_dims=keep_num_dims, bias=bias)
    graph.outputs = [op.output]
    return model


def layer(model: Model, name: str = "fc") -> FullyConnected:
    producer = value_named(model, name).producer
    assert producer is not None
    assert isinstance(producer.op, FullyConnected)
    return producer.op


def weights_of(op: FullyConnected) -> Array:
    assert op.weights.data is not None
    return op.weights.data


def dequantized(op: BCQFullyConnected) -> Array:
    found = learned_weights(op)
    assert found is not None
    return found.values()


def with_nearest_weights(op: FullyConnected, basis: Array) -> None:
    """Give a float layer the very weights that its quantized form will have."""
    weights = weights_of(op)
    words = encode_weights(weights, basis.astype(np.float32))
    values = learned_levels.decode(words, basis.astype(np.float32), weights.shape[1])
    op.weights.set_data(values.astype(np.float32))


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.graph.ops]


def assert_same(found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(initial=1e-30))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 70])
@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_the_layer_computes_with_the_nearest_levels(n: int, bits: int) -> None:
    model, basis = one_layer((5, n), n), weight_basis(6, bits)
    with_nearest_weights(layer(model), basis)
    x = random(7, 5, n)
    wanted = Interpreter(model).run(x)["fc"]
    new, result = replace_layer_bcq(layer(model), basis)
    finish(model)
    padded = ["PAD"] if n % 32 else []
    assert kinds(model) == [*padded, "TRANSPOSE", "BCQ_FULLY_CONNECTED", "TRANSPOSE"]
    assert (new.weights_hidden_size, result.name) == (-(-n // 32) * 32, "fc")
    assert_same(Interpreter(model).run(x)["fc"], wanted)


@pytest.mark.parametrize(
    ("shape", "keep_num_dims"),
    [
        ((2, 3, 40), False),
        ((2, 3, 40), True),
        ((2, 1, 3, 40), True),
        ((40,), True),
        ((40,), False),
        ((4, 20), False),
        ((2, 2, 20), False),
        ((1, 40), True),
    ],
)
def test_any_input_shape_gives_the_old_result_shape(
    shape: tuple[int, ...], keep_num_dims: bool
) -> None:
    model, basis = one_layer(shape, 40, keep_num_dims), weight_basis(6)
    with_nearest_weights(layer(model), basis)
    x = random(8, *shape)
    wanted, declared = Interpreter(model).run(x)["fc"], model.graph.outputs[0].shape
    replace_layer_bcq(layer(model), basis)
    assert model.graph.outputs[0].shape == declared
    assert_same(Interpreter(model).run(x)["fc"], wanted)


@pytest.mark.parametrize("shape", [(None, 40), (None, 3, 40)])
def test_an_open_batch_stays_open(shape: Shape) -> None:
    model, basis = one_layer(shape, 40, keep_num_dims=True), weight_basis(6)
    with_nearest_weights(layer(model), basis)
    before = Interpreter(model.clone())
    replace_layer_bcq(layer(model), basis)
    assert model.graph.outputs[0].shape == (*shape[:-1], 6)
    after = Interpreter(model)
    for batch in (1, 4):
        x = random(batch, *(batch if n is None else n for n in shape))
        assert_same(after.run(x)["fc"], before.run(x)["fc"])


def test_names_users_outputs_and_signatures_stay() -> None:
    model = network((40, 16, 4))
    for name, outputs in (("fc1", 16), ("fc2", 4)):
        replace_layer_bcq(layer(model, name), weight_basis(outputs))
    finish(model)
    assert [f for f in verify(model) if f.severity is Severity.ERROR] == []
    assert kinds(model).count("BCQ_FULLY_CONNECTED") == 2
    assert "FULLY_CONNECTED" not in kinds(model)
    (user,) = value_named(model, "fc1").users
    assert user.op.kind == "TANH"
    assert [v.name for v in model.graph.outputs] == ["fc2"]
    assert model.signatures[0].outputs == [("b", model.graph.outputs[0])]
    names = [v.name for v in model.graph.values]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("bias", [False, True])
def test_bias_and_activation_go_along(bias: bool) -> None:
    model, basis = one_layer((3, 64), 64, bias=bias), weight_basis(6)
    layer(model).activation = ActivationFunctionType.RELU
    with_nearest_weights(layer(model), basis)
    x = random(9, 3, 64)
    wanted = Interpreter(model).run(x)["fc"]
    new, _ = replace_layer_bcq(layer(model), basis)
    assert new.activation == ActivationFunctionType.RELU
    assert (new.bias is not None) == bias
    assert wanted.min() == 0
    assert_same(Interpreter(model).run(x)["fc"], wanted)


def test_a_bias_of_another_rank_becomes_a_vector() -> None:
    model = one_layer((3, 64), 64)
    bias = layer(model).bias
    assert bias is not None
    assert bias.data is not None
    bias.make_constant(bias.data.reshape(1, 6))
    new, _ = replace_layer_bcq(layer(model), weight_basis(6))
    assert new.bias is not None
    assert new.bias.shape == (6,)


@pytest.mark.parametrize("n", [64, 70])
def test_dequantized_weights_are_the_nearest_levels(n: int) -> None:
    model, basis = one_layer((1, n), n), weight_basis(6, 3)
    weights = weights_of(layer(model))
    new, _ = replace_layer_bcq(layer(model), basis)
    levels = learned_levels.sign_codes(3) @ basis.astype(np.float32).astype(np.float64).T
    distance = np.abs(levels.T[:, None, :] - weights[:, :, None])
    values = dequantized(new)
    found = values[:, :n]
    assert found.shape == (6, n)
    np.testing.assert_allclose(np.abs(found - weights), distance.min(-1), rtol=0, atol=1e-6)
    assert values.shape == (6, new.weights_hidden_size)


def test_files_hold_one_cluster_and_a_plane_for_each_bit() -> None:
    model, basis = one_layer((1, 64), 64), weight_basis(6, 3)
    weights = weights_of(layer(model))
    replace_layer_bcq(layer(model), basis)
    finish(model)
    again = from_bytes(to_bytes(model))
    (op,) = [op for op in again.graph.ops if isinstance(op, BCQFullyConnected)]
    assert op.weights_clusters.data is not None
    assert op.weights_clusters.data.tolist() == [[3, 6]]
    np.testing.assert_array_equal(
        op.weights_scales.data, basis.astype(np.float32).T.reshape(-1), strict=True
    )
    words = encode_weights(weights, basis.astype(np.float32))
    for plane in range(3):
        for row in range(6):
            assert op.weights_binary.data is not None
            np.testing.assert_array_equal(
                op.weights_binary.data[plane * 6 + row], words[row, plane]
            )
    x = random(1, 1, 64)
    np.testing.assert_array_equal(Interpreter(again).run(x)["fc"], Interpreter(model).run(x)["fc"])


def test_replacing_refuses_a_result_open_along_several_axes() -> None:
    model = one_layer((None, None, 40), 40, keep_num_dims=True)
    before = [v.name for v in model.graph.values]
    with pytest.raises(QuantizeError, match="FullyConnected 'fc': the extents of axes 0, 1 are"):
        replace_layer_bcq(layer(model), weight_basis(6))
    assert [v.name for v in model.graph.values] == before
    assert kinds(model) == ["FULLY_CONNECTED"]
