"""Networks with uniform integers: the file is what LiteRT's reference kernels compute, tensor by
tensor, and close to the float network.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import LucioleError, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine, is_affine
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.network.branches import Branches
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from luciole.tools.common.declined import declined
from tests.lquantizer.networks import Builder, images, with_sine
from tests.lquantizer.runs import QUICK, answers, integers_of_litert, is_float, quantized, records
from tests.networks import network, random

STATIC = ["int8", "uint8", "w4a8", "int16x8"]


def quantized_images(scheme: str) -> Model:
    """A copy of the network of images in a scheme, which is made once for all tests."""
    return _quantized_images(scheme).clone()


@cache
def _quantized_images(scheme: str) -> Model:
    return quantized(images(), scheme=scheme)


@pytest.mark.parametrize(("size", "wanted"), [(3, "INT8"), (1, "INT4")])
def test_small_depthwise_layers_keep_8_bits(size: int, wanted: str) -> None:
    """Those that hold up to 2 % of the weights, between layers of 4."""
    b = Builder()
    x = b.graph.add_input("x", (1, 6, 6, 16))
    layers: list[Op] = [Conv2D(x, b.weights(16, 3, 3, 16), None, stride_h=1, stride_w=1)]
    weights = b.weights(1, 3, 3, 16)
    before = b.add(layers[0])
    layers.append(
        DepthwiseConv2D(before, weights, None, stride_h=1, stride_w=1, depth_multiplier=1)
    )
    for count, given in ((48, 16), (48, 48)):
        filters = b.weights(count, size, size, given)
        layers.append(Conv2D(b.add(layers[-1]), filters, None, stride_h=1, stride_w=1))
    b.graph.outputs = [b.add(layers[-1])]
    made = luciole.quantize(b.model, records(b.model, 8), scheme="w4a8", **QUICK).model
    found = [op for op in made.graph.ops if isinstance(op, Conv2D | DepthwiseConv2D)]
    assert [op.filter.dtype.name for op in found] == ["INT4", wanted, "INT4", "INT4"]


@pytest.mark.parametrize("scheme", STATIC)
def test_every_integer_is_that_of_litert(scheme: str, tmp_path: Path) -> None:
    path = tmp_path / "q.tflite"
    made = quantized_images(scheme)
    for op in made.graph.ops:  # LiteRT's reference resolver stops there
        op.version = min(op.version, 6) if isinstance(op, DepthwiseConv2D) else op.version
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    x = random(9, 1, 8, 8, 3)
    ours.run({"x": x})
    compared = 0
    for name, wanted in integers_of_litert(path, x).items():
        value = next(v for v in ours.graph.values if v.name == name)
        if value.producer is not None:
            np.testing.assert_array_equal(
                ours.get_tensor(ours.graph.values.index(value)), wanted, name
            )
            compared += 1
    assert compared > 12


@pytest.mark.parametrize("scheme", [*STATIC, "dynamic", "weights", "float16"])
def test_litert_runs_every_scheme_with_its_default_kernels(scheme: str) -> None:
    from ai_edge_litert.interpreter import Interpreter

    if scheme in STATIC:
        made = quantized_images(scheme)
    else:
        model = images()
        for op in model.graph.ops:  # LiteRT takes no float convolution without one
            if isinstance(op, Conv2D) and op.bias is None:
                op.set_operand(2, model.graph.add_constant("zeros", np.zeros(8, np.float32)))
        made = quantized(model, scheme=scheme)
    interpreter = luciole.Interpreter(made)
    peer = Interpreter(model_content=to_bytes(made, "tflite"))
    peer.allocate_tensors()
    x = records(images(), 4, seed=77)["x"]
    for one in x:
        peer.set_tensor(peer.get_input_details()[0]["index"], one[None])
        peer.invoke()
        found = peer.get_tensor(peer.get_output_details()[0]["index"])
        (wanted,) = interpreter.run({"x": one[None]}).values()
        assert np.abs(found - wanted).max() < 0.03


@pytest.mark.parametrize(
    ("scheme", "most"),
    [
        ("int8", 0.02),
        ("uint8", 0.03),
        ("w4a8", 0.1),
        ("int16x8", 0.005),
        ("dynamic", 0.02),
        ("weights", 0.01),
        ("float16", 1e-3),
    ],
)
def test_answers_stay_close_to_the_float_network(scheme: str, most: float) -> None:
    model = images()
    x = records(model, 8, seed=77)
    difference = np.abs(answers(quantized_images(scheme), x) - answers(model, x))
    assert difference.max() < most


@pytest.mark.parametrize("scheme", STATIC)
def test_nothing_computes_with_floats_that_need_not(scheme: str) -> None:
    model = quantized_images(scheme)
    kinds = [
        type(op) for op in model.graph.ops if any(is_float(v) for v in (*op.operands, *op.results))
    ]
    assert kinds == [Quantize, Dequantize]


def test_an_operator_without_integers_stays_float_and_is_listed() -> None:
    model = with_sine()
    result = luciole.quantize(model, records(model), scheme="int8", **QUICK)
    kinds = [op.kind for op in result.model.graph.ops]
    layer = ["FULLY_CONNECTED"]
    assert kinds == ["QUANTIZE", *layer, "DEQUANTIZE", "SIN", "QUANTIZE", *layer, "DEQUANTIZE"]
    assert [text.split()[0] for text in result.report.floats] == ["SIN"]


def test_results_of_joined_and_moved_tensors_have_one_scale() -> None:
    graph = quantized_images("int8").graph
    (join,) = [op for op in graph.ops if isinstance(op, Concatenation)]
    grids = [Affine.of(v, "it") for v in (*join.operands, join.output) if v is not None]
    assert all(grids[0].same_numbers(other) for other in grids)


def pooled(size: int, **given: Any) -> Model:
    """A convolution whose results are averaged over windows of 8 x 8, 4 x 4, ... pixels."""
    b = Builder()
    x = b.graph.add_input("x", (1, 8, 8, 3))
    y = b.add(Conv2D(x, b.weights(8, 3, 3, 3), None, stride_h=1, stride_w=1, activation=Act.RELU))
    given |= {"filter_width": size, "filter_height": size, "stride_w": size, "stride_h": size}
    pool = b.add(AveragePool2D(y, padding=Padding.VALID, **given))
    flat = b.add(
        Reshape(pool, b.constant(np.array([1, -1], np.int32)), new_shape=(1, pool_size(size)))
    )
    b.graph.outputs = [b.add(FullyConnected(flat, b.weights(4, pool_size(size)), None))]
    return b.model


def pool_size(size: int) -> int:
    return 8 * (8 // size) ** 2


@pytest.mark.parametrize("scheme", STATIC)
def test_an_average_of_all_pixels_has_a_scale_of_its_own_in_bytes(
    scheme: str, tmp_path: Path
) -> None:
    model, path = pooled(8), tmp_path / "q.tflite"
    data = records(model)
    made = luciole.quantize(model, data, scheme=scheme, rescale="none", **QUICK).model
    (op,) = [op for op in made.graph.ops if op.kind in ("MEAN", "AVERAGE_POOL_2D")]
    assert op.kind == ("AVERAGE_POOL_2D" if scheme == "int16x8" else "MEAN")
    given = op.operands[0]
    assert given is not None
    before, behind = (float(Affine.of(v, "it").scale[0]) for v in (given, op.output))
    assert (behind == before) if scheme == "int16x8" else (behind < 0.7 * before)
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    ours.run({"x": data["x"][:1]})
    theirs = integers_of_litert(path, data["x"][:1])
    value = next(v for v in ours.graph.values if v.name == op.output.name)
    found = ours.get_tensor(ours.graph.values.index(value))
    np.testing.assert_array_equal(found, theirs[value.name])
    assert len(np.unique(found)) > 4


@pytest.mark.parametrize("given", [{"size": 4}, {"size": 8, "activation": Act.RELU6}])
def test_other_averages_keep_the_scale_of_what_they_read(given: dict[str, Any]) -> None:
    model = pooled(**given)
    made = luciole.quantize(model, records(model), scheme="int8", **QUICK).model
    assert "AVERAGE_POOL_2D" in [op.kind for op in made.graph.ops]


def test_fixed_scales_are_those_of_the_specification() -> None:
    graph = quantized_images("int8").graph
    fixed = {Softmax: (1 / 256, -128), Logistic: (1 / 256, -128), Tanh: (1 / 128, 0)}
    found = {type(op): op.output for op in graph.ops if type(op) in fixed}
    for kind, value in found.items():
        assert Affine.of(value, "it").same_numbers(Affine.single(*fixed[kind], TensorType.INT8))
    assert found.keys() == fixed.keys()


@cache
def with_ends(end: str) -> Model:
    return quantized(images(), scheme="int8", input_type=end, output_type=end, ranges="min_max")


@pytest.mark.parametrize(("end", "shift"), [("int8", 0), ("uint8", 128)])
def test_ends_may_be_integers(end: str, shift: int) -> None:
    model = images()
    plain, given = with_ends("int8"), with_ends(end)
    assert {given.graph.inputs[0].dtype, given.graph.outputs[0].dtype} == {TensorType[end.upper()]}
    assert [v.name for v in given.graph.inputs] == [v.name for v in model.graph.inputs]
    assert [v.name for v in given.graph.outputs] == [v.name for v in model.graph.outputs]
    codes = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 3))
    results = [
        next(iter(luciole.Interpreter(m).run({"x": (codes + s).astype(d)}).values())).astype(int)
        for m, s, d in ((plain, 0, np.int8), (given, shift, end))
    ]
    np.testing.assert_array_equal(results[0] + shift, results[1])


def test_a_signature_keeps_its_names() -> None:
    model = quantized(network(), scheme="int8", ranges="min_max")
    (signature,) = model.signatures
    assert [name for name, _ in (*signature.inputs, *signature.outputs)] == ["a", "b"]
    assert [v for _, v in signature.outputs] == model.graph.outputs


def test_a_tensor_without_any_scale_is_no_obstacle() -> None:
    """Records that are 0 throughout, and outputs that never are anything else."""
    model = images()
    zeros = {name: np.zeros_like(array) for name, array in records(model).items()}
    made = luciole.quantize(model, zeros, scheme="int8").model
    assert np.isfinite(answers(made, records(model))).all()


@pytest.mark.parametrize("count", [1, 2])
def test_a_record_or_two_will_do(count: int) -> None:
    model = images()
    made = luciole.quantize(model, records(model, count), scheme="int8").model
    assert np.abs(answers(made, records(model)) - answers(model, records(model))).max() < 0.2


def test_more_bits_are_closer_and_channels_are_closer_than_tensors() -> None:
    model = images()
    x = records(model, 8, seed=77)
    wanted = answers(model, x)

    def error(made: Model) -> float:
        return float(np.square(answers(made, x) - wanted).mean())

    errors = [error(quantized_images(scheme)) for scheme in ("int16x8", "int8", "w4a8")]
    assert errors[0] < errors[1] < errors[2]
    plain = quantized(model, scheme="w4a8", rounding="nearest", ranges="min_max")
    assert errors[2] < error(plain)


@pytest.mark.parametrize(
    "rule", ["min_max", "percentile:99.9", "moving_average", "record_percentile"]
)
def test_every_rule_of_ranges_gives_a_network(rule: str) -> None:
    model = images()
    x = records(model, 8, seed=77)
    made = quantized(model, scheme="int8", ranges=rule, rounding="nearest")
    assert np.abs(answers(made, x) - answers(model, x)).max() < 0.1


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"scheme": "int9"}, "scheme is 'int9'"),
        ({"scheme": "int8", "ranges": "widest"}, "ranges is 'widest'"),
        ({"scheme": "int8", "ranges": "percentile:most"}, "'most' is no number"),
        ({"scheme": "int8", "granularity": "row"}, "granularity is 'row'"),
        ({"scheme": "int8", "input_type": "int16"}, "input_type INT16 does not go with"),
        ({"scheme": "dynamic", "output_type": "int8"}, "output_type INT8 does not go with"),
        ({"scheme": "int8", "encode_bits": 3}, "encode_bits does not go with the scheme 'int8'"),
    ],
)
def test_what_does_not_go_is_refused(choices: dict[str, Any], sentence: str) -> None:
    model = network()
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(model, records(model), **choices)


def test_data_is_asked_for() -> None:
    with pytest.raises(QuantizeError, match="learns from data"):
        luciole.quantize(network(), scheme="int8")
    with pytest.raises(QuantizeError, match="int:w4a8 learns from data"):
        luciole.quantize(network())
    with pytest.raises(QuantizeError, match="levels are learned from data"):
        luciole.quantize(network(), encode_bits=3)


def test_a_quantized_model_is_not_quantized_again() -> None:
    model = quantized(network(), scheme="int8", ranges="min_max")
    with pytest.raises(QuantizeError, match=r"quantized already: tensor '.*' is INT8"):
        luciole.quantize(model, records(model), scheme="int8")


def test_not_a_number_is_refused() -> None:
    model = network()
    data = records(model)
    data["x"][3, 2] = np.nan
    with pytest.raises(LucioleError, match="element \\[2\\] of record 3 is nan"):
        luciole.quantize(model, data, scheme="int8")


def test_weights_of_integers_are_taken_for_the_numbers_they_stand_for() -> None:
    """A file of integer weights under float inputs is float from outside."""
    model = images()
    once = quantized_images("dynamic")
    twice = luciole.quantize(once, records(once), scheme="int8", **QUICK).model
    assert not any(is_float(v) and is_affine(v) for v in twice.graph.values)
    x = records(model, 8, seed=77)
    assert np.abs(answers(twice, x) - answers(model, x)).max() < 0.05


def test_a_file_is_smaller_as_its_weights_are() -> None:
    sizes = {}
    for scheme in ("float16", "weights", "int8", "w4a8"):
        model = network((200, 300, 10))
        data = None if scheme in ("float16", "weights") else records(model)
        report = luciole.quantize(model, data, scheme=scheme).report
        sizes[scheme] = report.bytes_after / report.bytes_before
    bounds = {
        "float16": (0.5, 0.53),
        "weights": (0.25, 0.3),
        "int8": (0.25, 0.3),
        "w4a8": (0.125, 0.18),
    }
    assert all(low < sizes[name] < high for name, (low, high) in bounds.items()), sizes


def _branching(shortcut_first: bool) -> Model:
    """Two convolutions of one input whose results are added, the 1x1 one in front or behind."""
    b = Builder()
    x = b.graph.add_input("x", (1, 6, 6, 8))

    def layer(size: int) -> Value:
        made = Conv2D(x, b.weights(12, size, size, 8), b.weights(12), stride_h=1, stride_w=1)
        made.padding = Padding.SAME
        return b.add(made)

    y, z = (layer(1), layer(3)) if shortcut_first else (layer(3), layer(1))
    b.graph.outputs = [b.add(Add(y, z, activation=Act.RELU))]
    return b.model


@pytest.mark.parametrize("shortcut_first", [True, False])
def test_of_two_layers_that_are_added_the_larger_makes_up_for_the_smaller(
    shortcut_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _branching(shortcut_first)
    data = {"x": random(3, 60, 6, 6, 8)}
    how: dict[str, Any] = {"scheme": "w4a8", "rescale": "none", "config": {"layers": []}}

    def error() -> float:
        made = luciole.quantize(model, data, **how, **QUICK).model
        return float(np.square(answers(made, data) - answers(model, data)).mean())

    together = error()
    monkeypatch.setattr(Branches, "in_work", lambda *_: None)
    assert together < 0.97 * error()


def test_small_layers_at_the_ends_keep_eight_bits() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    y = b.add(FullyConnected(x, b.weights(8, 16), b.weights(8), activation=Act.RELU))
    y = b.add(FullyConnected(y, b.weights(1200, 8), b.weights(1200), activation=Act.RELU))
    y = b.add(FullyConnected(y, b.weights(40, 1200), b.weights(40), activation=Act.RELU))
    y = b.add(FullyConnected(y, b.weights(12, 40), b.weights(12), activation=Act.RELU))
    b.graph.outputs = [b.add(FullyConnected(y, b.weights(10, 12), b.weights(10)))]
    data = {"x": random(5, 40, 16)}
    plain = luciole.quantize(b.model, data, scheme="w4a8", **QUICK)
    assert [layer.weight_bits for layer in plain.report.layers] == [8, 4, 4, 4, 8]
    asked = luciole.quantize(b.model, data, scheme="w4a8", config={"layers": []}, **QUICK)
    assert [layer.weight_bits for layer in asked.report.layers] == [4] * 5


@pytest.mark.parametrize("granularity", ["channel", "tensor"])
def test_a_bias_beside_weights_next_to_nothing_stays_within_32_bits(granularity: str) -> None:
    """As BatchNorm leaves dead channels; such a layer runs compiled."""
    b = Builder()
    x = b.graph.add_input("x", (1, 4, 4, 3))
    weights, bias = random(1, 8, 1, 1, 3), random(2, 8)
    weights[5], bias[5] = 1e-30, -0.7
    conv = Conv2D(x, b.constant(weights), b.constant(bias), stride_h=1, stride_w=1)
    b.graph.outputs = [b.add(conv)]
    made = quantized(b.model, scheme="int8", granularity=granularity, ranges="min_max")
    (layer,) = (op for op in made.graph.ops if isinstance(op, Conv2D))
    assert layer.bias is not None
    assert layer.bias.data is not None
    assert np.abs(layer.bias.data.astype(np.int64)).max() <= 2**30
    interpreter = luciole.Interpreter(made)
    interpreter.allocate_tensors()
    assert not declined(interpreter.plan)
    (found,) = interpreter.run({"x": random(3, 1, 4, 4, 3)}).values()
    assert np.abs(found[..., 5] + 0.7).max() < 0.03


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_steps_that_share_weights_share_their_biases(scheme: str) -> None:
    """As those of an unrolled LSTM, whose states lie on one grid."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    weights, bias = b.weights(16, 16), b.constant(random(2, 16))
    first = b.add(Tanh(b.add(FullyConnected(x, weights, bias))))
    second = b.add(Tanh(b.add(FullyConnected(first, weights, bias))))
    b.graph.outputs = [b.add(FullyConnected(second, weights, bias))]
    made = quantized(b.model, scheme=scheme)
    steps = [op for op in made.graph.ops if isinstance(op, FullyConnected)][1:]
    assert steps[0].bias is steps[1].bias
