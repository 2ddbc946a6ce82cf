"""Which layers can get learned levels, and the reason for each that is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from luciole import quantize
from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, TensorType
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.control_flow import Call
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer import Choice, Config
from luciole.lquantizer.calibration.rows import weight_rows
from luciole.lquantizer.methods.published import Published
from luciole.lquantizer.network.layers import find_groups, misfit
from luciole.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from tests.networks import dense, network, random, value_named

Change = Callable[[Model, FullyConnected], None]

DENSE = Published().scope
"""Dense layers alone, each by itself."""


def first_layer() -> tuple[Model, FullyConnected]:
    model = network()
    op = model.graph.ops[0]
    assert isinstance(op, FullyConnected)
    return model, op


@pytest.mark.parametrize(
    "activation",
    [a for a in ActivationFunctionType if a != ActivationFunctionType.SIGN_BIT],
)
@pytest.mark.parametrize("bias", [True, False])
def test_dense_layers_qualify(activation: ActivationFunctionType, bias: bool) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = dense(graph, graph.add_input("x", (1, 5)), (3, 5), "fc", bias)
    op.activation = activation
    assert misfit(op) is None
    layers, skipped = find_groups(graph, Config(Choice(2, 4)), DENSE)
    assert [(layer.name, layer.choice) for layer in layers] == [("fc", Choice(2, 4))]
    np.testing.assert_array_equal(
        weight_rows(layers[0].ops[0]), value_named(model, "fc/weights").data
    )
    assert skipped == {}


def weights_are_int8(model: Model, op: FullyConnected) -> None:
    op.weights.make_constant(np.ones((16, 20), np.int8))


def input_is_int8(model: Model, op: FullyConnected) -> None:
    op.input.dtype = TensorType.INT8


def weights_are_an_input(model: Model, op: FullyConnected) -> None:
    op.weights.buffer = None
    model.graph.inputs.append(op.weights)


def bias_is_an_input(model: Model, op: FullyConnected) -> None:
    assert op.bias is not None
    op.bias.buffer = None
    model.graph.inputs.append(op.bias)


def bias_is_int32(model: Model, op: FullyConnected) -> None:
    assert op.bias is not None
    op.bias.make_constant(np.zeros(16, np.int32))


def input_is_constant(model: Model, op: FullyConnected) -> None:
    op.input = model.graph.add_constant("still", random(0, 1, 20))


def input_is_computed_from_constants(model: Model, op: FullyConnected) -> None:
    still = model.graph.add_constant("still", random(0, 1, 20))
    model.graph.insert_before(op, Tanh(still), "computed")
    op.input = model.graph.ops[0].output


def weights_are_shuffled(model: Model, op: FullyConnected) -> None:
    op.weights_format = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8


def activation_is_unusual(model: Model, op: FullyConnected) -> None:
    op.activation = ActivationFunctionType.SIGN_BIT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (weights_are_int8, "it is FLOAT32 x INT8, FLOAT32 is needed"),
        (input_is_int8, "it is INT8 x FLOAT32, FLOAT32 is needed"),
        (weights_are_an_input, "its weights are computed, not constant"),
        (bias_is_an_input, "its bias is not a FLOAT32 constant"),
        (bias_is_int32, "its bias is not a FLOAT32 constant"),
        (weights_are_shuffled, "its weights are stored as SHUFFLED4x16INT8"),
        (activation_is_unusual, "its fused activation SIGN_BIT has no kernel"),
    ],
)
def test_a_layer_that_does_not_qualify_has_a_reason(change: Change, reason: str) -> None:
    model, op = first_layer()
    change(model, op)
    layers, skipped = find_groups(model.graph, Config(), DENSE)
    assert [layer.name for layer in layers] == ["fc2"]
    assert skipped == {"fc1": reason}


@pytest.mark.parametrize("change", [input_is_constant, input_is_computed_from_constants])
def test_layers_that_see_the_same_for_every_record_are_left_alone(change: Change) -> None:
    model, op = first_layer()
    change(model, op)
    reason = "its input is constant"
    assert find_groups(model.graph, Config(), DENSE) == (
        [],
        {"fc1": reason, "fc2": reason},
    )


def test_layers_of_other_kinds_are_named() -> None:
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 4, 2))
    filters = graph.add_constant("f", random(0, 3, 1, 1, 2))
    op = Conv2D(x, filters, None, stride_h=1, stride_w=1)
    graph.append(op, "conv")
    assert find_groups(graph, Config(), DENSE) == (
        [],
        {"conv": "CONV_2D has no learned form"},
    )


def test_layers_of_called_graphs_and_products_of_matrices_are_listed() -> None:
    model = network((20, 16))
    main, body = model.graph, model.add_graph(Graph("body"))
    y = main.outputs[0]
    weights = body.add_constant("inner/w", random(0, 16, 16))
    inner = body.append(FullyConnected(body.add_input("inner/x", y.shape), weights), "inner")
    body.outputs = [inner.output]
    called = main.append(Call.from_operands([y], {"graph_": body}), "called").output
    product = main.append(BatchMatMul(called, main.add_constant("m", random(1, 16, 4))), "product")
    main.outputs = [product.output]
    report = quantize(model, {"x": random(2, 30, 20)}, encode_bits=3, spared="float").report
    assert report.left_alone() == {
        "BATCH_MATMUL has no learned form but for its weights: --all-layers (all_layers) or a "
        "config that names it gives it levels": ["product"],
        "it is inside of graph 'body', which is called": ["inner"],
    }
    assert [layer.bytes_before for layer in report.layers[1:]] == [16 * 4 * 4, 16 * 16 * 4]


def test_a_first_step_on_zeros_keeps_no_second_kernel() -> None:
    model = network((20, 16))
    graph, op = model.graph, model.graph.ops[0]
    weights = op.operands[1]
    assert weights is not None
    zeros = graph.add_constant("zeros", np.zeros((1, 20), np.float32))
    first = graph.insert_before(op, FullyConnected(zeros, weights), "first").output
    graph.outputs = [graph.append(Add(op.output, first), "sum").output]
    x = random(2, 30, 20)
    found = quantize(model, {"x": x}, encode_bits=3, spared="float")
    kinds = [op.kind for op in found.model.graph.ops]
    assert kinds == ["LQ_FULLY_CONNECTED", "ADD"]
    assert found.report.left_alone() == {}
    assert max(len(b) for b in found.model.buffers) < 20 * 16 * 4
    wanted, ours = (Interpreter(m).run(x[:1])["sum"] for m in (model, found.model))
    assert np.abs(wanted - ours).max() < 0.5 * np.abs(wanted).max()


def test_the_config_leaves_layers_alone_and_chooses_widths() -> None:
    model = network((20, 16, 8, 4))
    config = Config.parse(
        {"layers": [{"name": "fc1", "skip": True}, {"name": "fc3", "input_bits": 7}]}, Choice(2, 2)
    )
    layers, skipped = find_groups(model.graph, config, DENSE)
    assert [(layer.name, layer.choice) for layer in layers] == [
        ("fc2", Choice(2, 2)),
        ("fc3", Choice(7, 2)),
    ]
    assert skipped == {"fc1": "skipped by the config"}


def test_constant_bytes_counts_every_buffer_once() -> None:
    _, op = first_layer()
    assert constant_bytes(op) == 4 * (16 * 20 + 16)
    assert op.bias is not None
    op.bias.buffer = op.weights.buffer
    assert constant_bytes(op) == 4 * 16 * 20


@pytest.mark.parametrize(("asked", "bits"), [({}, 8), ({"all_layers": True}, 2)])
def test_a_small_first_layer_reads_its_inputs_in_8_bits(asked: dict[str, Any], bits: int) -> None:
    model = network((6, 16, 24, 10))
    report = quantize(model, {"x": random(2, 60, 6)}, encode_bits=2, **asked).report
    assert [layer.input_bits for layer in report.layers] == [bits, 2, 2]


def test_a_first_layer_that_holds_much_of_a_network_reads_as_few_bits_as_others() -> None:
    report = quantize(network((20, 16, 10)), {"x": random(2, 60, 20)}, encode_bits=2).report
    assert [layer.input_bits for layer in report.layers] == [2, 2]
