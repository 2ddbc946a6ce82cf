"""ONNX files that luciole writes: what onnxruntime computes from them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

import luciole
from luciole.exporters import save, to_bytes
from luciole.exporters.onnx.rules import rule, rules
from luciole.importers import load
from luciole.importers.onnx.model import from_bytes
from luciole.ir import (
    Array,
    Buffer,
    Graph,
    Model,
    Signature,
    TensorType,
    UnsupportedError,
    Value,
)
from luciole.ir.errors import LucioleError
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.complex_parts import ComplexAbs, ComplexPart, Imag, Real
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import If, While
from luciole.ir.ops.dilate import Dilate
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.non_max_suppression import NonMaxSuppressionV4
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.random import RandomUniform
from luciole.ir.ops.rfft2d import Rfft2d
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.quantization import Affine
from luciole.schema.enums import ActivationFunctionType, Padding
from luciole.tools.random_models import convolutions, dense, lq_convolution, lq_dense
from tests import test_recipes_run as recipes
from tests.exporters.onnx_support import (
    alone,
    back,
    by_onnxruntime,
    codes,
    constants,
    kinds,
    ours,
    same,
    written,
)
from tests.lquantizer.test_poles import network, normalized
from tests.networks import random
from tests.support import data_path
from tests.tools.running import call

RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
REFUSED = {
    "NonMaxSuppressionV4_000": "max_output_size is computed, ONNX needs a constant",
    "NonMaxSuppressionV5_000": "soft_nms_sigma is computed, ONNX needs a constant",
    "NonMaxSuppressionV5_001": "soft_nms_sigma is computed, ONNX needs a constant",
    "ReverseV2_000": "the axes are computed, ONNX needs a constant",
    "UnidirectionalSequenceLSTM_001": "its cell state is clipped",
}
"""Recipes of floats that are not written, and why."""


SETTLED = "import computes what is known"
LONGER = "import spells out what ONNX's operator does for all operands"
DOUBLES = "import takes doubles for floats"
COUNTED = "import hands on the number of a turn, and whether another follows"
OTHERWISE = {
    "Fill_001": LONGER,
    "FloorDiv_000": DOUBLES,
    "FloorDiv_001": DOUBLES,
    "FloorMod_000": LONGER,
    "FloorMod_001": LONGER,
    "L2Normalize_000": "import's MAXIMUM takes the number where the other one is NaN, Max does not",
    "Net_Conv_Relu6_000": "import fuses a RELU6 into the layer before, whose own result is gone",
    "Net_ZeroDim_001": "import moves a TRANSPOSE behind an ADD",
    "NonMaxSuppressionV4_001": LONGER,
    "Range_000": SETTLED,
    "Rank_000": SETTLED,
    "If_000": "import hands branches what they read from outside",
    "If_001": "import hands branches what they read from outside",
    "ResizeNearestNeighbor_000": "import picks pixels by GATHER: ONNX rounds halves otherwise",
    "Shape_000": SETTLED,
    "SparseToDense_000": LONGER,
    "While_000": COUNTED,
    "While_001": COUNTED,
    "While_002": COUNTED,
    "ZerosLike_000": SETTLED,
}
"""Recipes whose files are other ones once they were read and written again, and why."""
UNREAD = {
    "Unique_000": "Unique",
    "Unique_001": "Unique",
    "Unique_002": "Unique",
    "Unique_003": "Unique",
}
"""Recipes whose files are not read, and the operator that is not imported."""


def of_floats(name: str) -> bool:
    """Whether a recipe is about floats, and runs here."""
    return "_U8_" not in name and recipes.listed(name, recipes.BOTH_REFUSE) is None


cooked = cache(recipes.cooked)


@cache
def computed(name: str) -> tuple[list[Array], list[Array]]:
    """The inputs of a recipe, and the outputs that the interpreter gives."""
    inputs = [recipes.given(value, name, 0) for value in cooked(name).graph.inputs]
    return inputs, recipes.ours(cooked(name), inputs)


@pytest.mark.parametrize("name", [name for name in recipes.names("tflite") if of_floats(name)])
def test_onnxruntime_computes_what_the_interpreter_does(name: str) -> None:
    model = cooked(name)
    custom = [op.kind for graph in model.graphs for op in graph.ops if op.kind[:6] == "CUSTOM"]
    why = REFUSED.get(name) or (custom and "ONNX has no operator for it")
    if why:
        with pytest.raises(UnsupportedError, match=re.escape(why)):
            to_bytes(model, "onnx", check=False)
        return
    inputs, wanted = computed(name)
    same(by_onnxruntime(written(model), inputs), wanted)


@pytest.mark.parametrize("name", [name for name in recipes.names("tflite") if of_floats(name)])
def test_export_of_what_was_read_is_the_identity(name: str) -> None:
    model = cooked(name)
    try:
        content = to_bytes(model, "onnx", check=False)
    except UnsupportedError:
        pytest.skip("it is not written, see above")
    if name in UNREAD:
        with pytest.raises(UnsupportedError, match=f"not imported: {UNREAD[name]}"):
            back(content)
        return
    found = back(content)
    inputs, wanted = computed(name)
    same(recipes.ours(found, inputs), wanted)
    assert [v.name for v in found.graph.outputs] == [v.name for v in model.graph.outputs]
    assert (to_bytes(found, "onnx") == content) is (name not in OTHERWISE)


@pytest.mark.parametrize("name", recipes.names("circle"))
def test_onnxruntime_computes_circles_own_operators(name: str) -> None:
    model = recipes.cooked(name, "circle")
    inputs = [recipes.given(value, name, 0) for value in model.graph.inputs]
    same(by_onnxruntime(written(model), inputs), recipes.ours(model, inputs))


@pytest.mark.parametrize("steps", [(1, 3, 2), (4, 1, 1), (1, 1, 1)])
def test_dilated_elements_lie_as_far_apart(steps: tuple[int, ...]) -> None:
    graph = Graph("main")
    x, padding = graph.add_input("x", (2, 3, 4)), graph.add_constant("p", np.array(-7, np.float32))
    model = alone(
        Dilate(x, graph.add_constant("d", np.array(steps, np.int32)), padding), graph, "y"
    )
    given = [random(0, 2, 3, 4)]
    same(by_onnxruntime(written(model), given), ours(model, given))


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("lengths", [(8, 8), (5, 6), (16, 4)])
@pytest.mark.parametrize("part", [Real, Imag, ComplexAbs])
def test_parts_of_a_fourier_transform(
    part: type[ComplexPart], lengths: tuple[int, int], opset: int
) -> None:
    graph = Graph("main")
    count = graph.add_constant("n", np.array(lengths, np.int32))
    made = graph.append(Rfft2d(graph.add_input("x", (2, 8, 8)), count), "frequencies").output
    model = alone(part(made), graph, "y")
    given = [random(0, 2, 8, 8)]
    same(by_onnxruntime(written(model, opset), given), ours(model, given))


def test_export_refuses_complex_numbers_that_are_no_parts() -> None:
    graph = Graph("main")
    count = graph.add_constant("n", np.array([4, 4], np.int32))
    model = alone(Rfft2d(graph.add_input("x", (4, 4)), count), graph, "y")
    with pytest.raises(UnsupportedError, match="which REAL, IMAG and COMPLEX_ABS read"):
        to_bytes(model, "onnx")


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
def test_a_box_whose_overlap_is_the_threshold_is_dropped_there_too(share: float) -> None:
    graph = Graph("main")
    boxes, scores = graph.add_input("boxes", (4, 4)), graph.add_input("scores", (4,))
    most = graph.add_constant("most", np.array(4, np.int32))
    threshold = graph.add_input("threshold", ())
    low = graph.add_constant("low", np.array(0, np.float32))
    model = alone(NonMaxSuppressionV4(boxes, scores, most, threshold, low), graph, "places", "n")
    heights = np.array([1, 0.5, 0.75, 0.25], np.float32)
    rows = np.stack([heights * 0, heights * 0, heights, heights * 0 + 1], 1)
    given = [rows, np.array([0.9, 0.8, 0.7, 0.6], np.float32), np.array(share, np.float32)]
    content = written(model)
    same(by_onnxruntime(content, given), ours(model, given))
    same(ours(back(content), given), ours(model, given))


# ---------------------------------------------------------------------------------------- networks
@pytest.mark.parametrize("name", ["ad01", "resnet8", "mbnet"])
def test_a_network_has_transposes_at_its_ends_alone(name: str) -> None:
    model = load(data_path(f"models/{name}_fp32.tflite"))
    content = written(model)
    x = np.random.default_rng(0).random(model.graph.inputs[0].dims, np.float32)
    same(by_onnxruntime(content, [x]), ours(model, [x]))
    assert kinds(content)["Transpose"] <= 2


@pytest.mark.parametrize(
    "name",
    [
        "resnet8_fp32",
        "resnet8_int8",
        "mbnet_fp32",
        "mnist_lstm_fp32",
        "ad01_int8",
        "kws_fp32",
        "vww_96_int8",
    ],
)
def test_a_file_that_was_read_is_written_again(name: str) -> None:
    content = to_bytes(load(data_path(f"models/{name}.tflite")), "onnx")
    assert to_bytes(back(content), "onnx") == content


def test_biases_of_more_than_24_bits_come_back() -> None:
    model = load(data_path("models/vww_96_int8.tflite"))
    large = {v.name: v.data for v in model.graph.values if is_large(v)}
    again = {v.name: v.data for v in back(to_bytes(model, "onnx")).graph.values}
    assert large
    for name, stored in large.items():
        np.testing.assert_array_equal(again[name], stored)


def is_large(value: Value) -> bool:
    codes, is_bias = value.data, value.dtype == TensorType.INT32 and value.quantization is not None
    return is_bias and codes is not None and bool((abs(codes) > 1 << 24).any())


def test_an_lstm_that_onnx_has_not_is_spelled_out() -> None:
    model = load(data_path("models/mnist_lstm_fp32.tflite"))
    x = np.random.default_rng(0).random(model.graph.inputs[0].dims, np.float32)
    content = written(model)
    assert kinds(content)["LSTM"] == 0
    same(by_onnxruntime(content, [x]), ours(model, [x]))


def test_an_open_batch_stays_open() -> None:
    model = dense([6, 5, 3])
    model.graph.inputs[0].shape = (None, 6)
    model.graph.outputs[0].shape = (None, 3)
    content, x = written(model), random(0, 7, 6)
    same(by_onnxruntime(content, [x]), ours(model, [x]))


def test_if_and_while_read_values_from_outside() -> None:
    model = Model()
    main, then, other, condition, body = (
        model.add_graph(Graph(n)) for n in ("main", "then", "else", "condition", "body")
    )
    x, flag = main.add_input("x", (2,)), main.add_input("flag", (), TensorType.BOOL)
    for graph, cls, number in ((then, Add, 1), (other, Mul, 2), (body, Mul, 3)):
        inside = graph.add_input("in", (2,))
        constant = graph.add_constant("number", np.full(2, number, np.float32))
        graph.append(cls(inside, constant), "out")
        graph.outputs = [graph.values[-1]]
    _below(condition, 100)
    main.append(If(flag, (x,), then_graph=then, else_graph=other), "chosen")
    loop = While((main.values[-1],), condition_graph=condition, body_graph=body)
    main.append(loop, "grown")
    main.outputs = [main.values[-1]]
    content = written(model)
    for flag_ in (True, False):
        given = [np.array([1, 2], np.float32), np.array(flag_)]
        same(by_onnxruntime(content, given), ours(model, given))


def _below(graph: Graph, limit: float) -> None:
    """Let a graph tell whether its input's sum is below a limit."""
    from luciole.ir.ops.reduce import Sum

    inside = graph.add_input("in", (2,))
    axes = graph.add_constant("axes", np.array([0], np.int32))
    graph.append(Sum(inside, axes), "sum")
    most = graph.add_constant("limit", np.array(limit, np.float32))
    graph.append(Less(graph.values[-2], most), "below")
    graph.outputs = [graph.values[-1]]


# ---------------------------------------------------------------------------------- learned levels
LEARNED = {
    **{f"dense{k}": lq_dense([784, 512, 10], k) for k in (1, 2, 3)},
    **{f"conv{k}": lq_convolution(8, 40, k) for k in (1, 2)},
}


@pytest.mark.parametrize("name", LEARNED)
def test_plain_onnxruntime_runs_learned_levels(name: str) -> None:
    model = LEARNED[name]
    x = np.random.default_rng(1).normal(size=model.graph.inputs[0].dims).astype(np.float32)
    content = written(model)
    wanted = luciole.Interpreter(model, compiled=False).run(x)  # as the formula says
    same(by_onnxruntime(content, [x]), list(wanted.values()))
    if name.startswith("dense"):
        assert len(content) <= 1.05 * len(to_bytes(model))


@pytest.mark.parametrize("name", LEARNED)
def test_learned_levels_are_found_again(name: str) -> None:
    model = LEARNED[name]
    content = written(model)
    again = back(content)
    learned = [op.kind for op in model.graph.ops if op.kind.startswith("LQ_")]
    assert [op.kind for op in again.graph.ops if op.kind.startswith("LQ_")] == learned
    assert not set(constants(model)) - set(constants(again))
    if name.startswith("dense"):
        assert constants(again) == constants(model)
        assert to_bytes(again, "onnx") == content


@pytest.mark.parametrize("name", ["BCQFullyConnected_000", "BCQFullyConnected_001"])
def test_signs_of_bcq_are_found_again(name: str) -> None:
    model = recipes.cooked(name, "circle")
    content = written(model)
    again = back(content)
    assert [op.kind for op in again.graph.ops] == [op.kind for op in model.graph.ops]
    assert constants(again) == constants(model)
    assert to_bytes(again, "onnx") == content


# ----------------------------------------------------------------------------------------- integers
def test_int8_layers_give_equal_codes() -> None:
    model = load(data_path("models/ad01_int8.tflite"))
    content = written(model)
    for seed in range(5):
        inputs = codes(model, seed)
        np.testing.assert_array_equal(by_onnxruntime(content, inputs)[0], ours(model, inputs)[0])


def int8_network(scheme: str) -> Model:
    rng = np.random.default_rng(0)
    model = convolutions(8, 8)
    x = rng.normal(size=(64, *model.graph.inputs[0].dims[1:])).astype(np.float32)
    return luciole.quantize(model, x, scheme=scheme).model


@pytest.mark.parametrize(
    ("scheme", "opset", "share"),
    [("int8", None, 0.01), ("uint8", None, 0.01), ("int16x8", 21, 0.03)],
)
def test_a_convolution_of_integers_is_off_by_one_at_most(
    scheme: str, opset: int | None, share: float
) -> None:
    """TFLite rounds twice on its way to a code, which moves few of them; single precision has only
    8 bits below a code of 16.
    """
    model = int8_network(scheme)
    graph = model.graph
    first = next(op for op in graph.ops if op.kind == "CONV_2D")
    for op in reversed(graph.ops[graph.ops.index(first) + 1 :]):
        graph.outputs = [] if op.results[0].is_output else graph.outputs
        graph.remove(op)
    graph.outputs, model.signatures = [first.output], []
    x = np.random.default_rng(1).normal(size=graph.inputs[0].dims).astype(np.float32)
    inputs = [x] if graph.inputs[0].dtype == TensorType.FLOAT32 else codes(model, 1)
    found = by_onnxruntime(written(model, opset), inputs)[0].astype(np.int64)
    apart = np.abs(found - ours(model, inputs)[0])
    assert apart.max() <= 1
    assert (apart > 0).mean() <= share


@pytest.mark.parametrize("opset", [18, 21, 23])
def test_integers_are_packed_in_every_operator_set(opset: int) -> None:
    graph = Graph("main")
    grid = Affine.single(0.05, 3, TensorType.INT8).table()
    x = graph.add_input("x", (2, 3), TensorType.INT8)
    x.quantization = grid
    model = alone(Pack((x, x), axis=1, values_count=2), graph, "y")
    graph.outputs[0].quantization = grid
    given = [np.random.default_rng(0).integers(-128, 128, (2, 3)).astype(np.int8)]
    same(by_onnxruntime(written(model, opset), given), ours(model, given))


def test_a_normalization_of_16_bits_chooses_a_newer_opset() -> None:
    x = random(1, 50, 16)
    model = luciole.quantize(network(normalized), {"x": x}, scheme="int8", proof=False).model
    content = to_bytes(model, "onnx")
    assert onnx.load_from_string(content).opset_import[0].version == 21
    for row in x:
        (theirs,), (mine,) = by_onnxruntime(content, [row[None]]), ours(model, [row[None]])
        assert np.square(mine).sum() > 10**3 * np.square(theirs - mine).sum()


def test_export_refuses_weights_of_four_bits_in_an_old_opset() -> None:
    model = luciole.quantize(dense([64, 32, 8]), scheme="weights4").model
    with pytest.raises(UnsupportedError, match=r"need opset 21 \(--opset\)"):
        to_bytes(model, "onnx", opset=18)


@pytest.mark.parametrize("scheme", ["weights4", "weights:int4/32", "w4a8"])
def test_weights_of_four_bits_choose_a_newer_opset(scheme: str) -> None:
    data = None if "weights" in scheme else {"x": random(1, 32, 64)}
    model = luciole.quantize(dense([64, 32, 8]), data, scheme=scheme, proof=False).model
    content, x = written(model), random(0, 1, 64)
    assert onnx.load_from_string(content).opset_import[0].version == 21
    types = {t.data_type for t in onnx.load_from_string(content).graph.initializer}
    assert onnx.TensorProto.INT4 in types
    same(by_onnxruntime(content, [x]), ours(model, [x]))


# -------------------------------------------------------------------------------- what a file keeps
def test_names_signatures_and_metadata_are_kept(tmp_path: Path) -> None:
    model = dense([4, 3])
    graph = model.graph
    model.description = "made for a test"
    model.metadata = [("made by", Buffer(np.frombuffer(b"\0\xff luciole", np.uint8)))]
    pairs = [[("image", graph.inputs[0])], [("class", graph.outputs[0])]]
    model.signatures = [Signature("serve", graph, *pairs)]
    assert save(model, tmp_path / "m.onnx") == (tmp_path / "m.onnx").stat().st_size
    proto = onnx.load(tmp_path / "m.onnx")
    assert (proto.ir_version, proto.opset_import[0].version) == (8, 18)
    assert [v.name for v in proto.graph.input] == ["x"]
    assert [v.name for v in proto.graph.output] == [graph.outputs[0].name]
    again = luciole.load(tmp_path / "m.onnx")
    assert again.description == model.description
    ((name, buffer),) = again.metadata
    assert buffer.data is not None
    assert (name, buffer.data.tobytes()) == ("made by", b"\0\xff luciole")
    (found,) = again.signatures
    assert (found.key, [n for n, _ in found.inputs]) == ("serve", ["image"])
    assert found.outputs == [("class", again.graph.outputs[0])]


@pytest.mark.parametrize("text", ["{", "[1]", '[{"key": "a", "inputs": {"x": 9}, "outputs": {}}]'])
def test_reading_refuses_damaged_signatures(text: str) -> None:
    proto = onnx.load_from_string(to_bytes(dense([4, 3]), "onnx"))
    onnx.helper.set_model_props(proto, {"luciole.signatures": text})
    with pytest.raises(LucioleError, match=r"the entry luciole\.signatures lists no signatures"):
        from_bytes(proto.SerializeToString())


def test_tensors_of_one_name_get_names_of_their_own() -> None:
    model = dense([4, 3, 2])
    for op in model.graph.ops[:-1]:
        op.results[0].name = "x"
    x = random(0, 1, 4)
    same(by_onnxruntime(written(model), [x]), list(luciole.Interpreter(model).run(x).values()))


# ---------------------------------------------------------------------------------------- programs
def test_import_writes_onnx(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source, target = tmp_path / "m.circle", tmp_path / "m.onnx"
    save(dense([6, 5, 3]), source)
    outcome = call(capsys, "import", str(source), "-o", str(target), "--opset", "20", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["bytes"] == target.stat().st_size
    assert onnx.load(target).opset_import[0].version == 20


def test_import_refuses_an_opset_of_another_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save(dense([6, 3]), tmp_path / "m.circle")
    given = ["import", str(tmp_path / "m.circle"), "-o", str(tmp_path / "n.circle")]
    text = call(capsys, *given, "--opset", "18").error(1)
    assert text == ".circle files have no opset; .onnx files do"


def test_import_refuses_an_opset_that_is_not_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save(dense([6, 3]), tmp_path / "m.circle")
    given = ["import", str(tmp_path / "m.circle"), "-o", str(tmp_path / "n.onnx"), "--opset", "9"]
    assert call(capsys, *given).error(3).startswith("opset 9 is not written, 18 to ")


def test_import_lists_all_that_onnx_has_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    shape = graph.add_constant("shape", np.array([2], np.int32))
    for name in ("a", "b"):
        graph.append(RandomUniform(shape), name)
        graph.append(Relu(graph.values[-1]), f"{name}/relu")
    graph.outputs = [graph.values[-1]]
    save(model, tmp_path / "m.circle")
    target = tmp_path / "m.onnx"
    text = call(capsys, "import", str(tmp_path / "m.circle"), "-o", str(target)).error(3)
    assert text == "ONNX: RANDOM_UNIFORM 'a' and 1 more: ONNX has no operator for it"
    assert not target.exists()


def test_rules_are_found_and_refuse_a_second_one() -> None:
    assert len(rules()) > 120
    assert SVDF not in rules()
    with pytest.raises(TypeError, match="Relu has a rule already"):
        rule(Relu)(lambda k, op: None)


def _turned_up(offsets: tuple[int, int], factors: tuple[int, int]) -> Model:
    """A transposed convolution of open images whose result grows with them, by two strides."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, None, None, 2))

    def numbers(*values: int) -> Value:
        return graph.add_constant(graph.unique_name("n"), np.array(values, np.int32))

    extents = graph.append(Shape(x, out_type=TensorType.INT32), "extents").output
    batch = graph.append(Slice(extents, numbers(0), numbers(1)), "batch").output
    pixels = graph.append(Slice(extents, numbers(1), numbers(2)), "pixels").output
    grown = graph.append(Mul(pixels, numbers(*factors)), "grown").output
    whole = graph.append(Add(grown, numbers(*offsets)), "whole").output
    sizes = graph.append(Concatenation((batch, whole, numbers(4)), axis=0), "sizes").output
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 2)).astype(np.float32)
    layer = TransposeConv(sizes, graph.add_constant("w", weights), x, stride_h=2, stride_w=3)
    layer.padding = Padding.SAME if not any(offsets) else Padding.VALID
    graph.outputs = [graph.append(layer, "y").output]
    return model


@pytest.mark.parametrize("offsets", [(1, 0), (0, 0)])
def test_transposed_convolutions_of_open_images_turn_them_up_alike(
    offsets: tuple[int, int],
) -> None:
    model = _turned_up(offsets, (2, 3))
    content = to_bytes(model, "onnx")
    assert "Shape" not in kinds(content)
    for size in ((1, 4, 5, 2), (2, 3, 1, 2)):
        x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
        expected = luciole.Interpreter(model, compiled=False).run(x)["y"]
        assert expected.shape == (size[0], 2 * size[1] + offsets[0], 3 * size[2], 4)
        (got,) = by_onnxruntime(content, [x])
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_transposed_convolutions_refuse_results_that_grow_by_other_steps() -> None:
    with pytest.raises(UnsupportedError, match="input_sizes is computed, ONNX needs a constant"):
        to_bytes(_turned_up((0, 0), (2, 2)), "onnx")
