"""ONNX files: what onnxruntime computes of them is what luciole computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers.onnx import OnnxReader
from luciole.importers.onnx.model import from_bytes, from_proto
from luciole.importers.onnx.rules import rule
from luciole.importers.reader import reader_of_bytes
from luciole.ir import Array, LucioleError, TensorType, UnsupportedError
from luciole.ir.errors import FormatError
from luciole.ir.ops.conv_2d import Conv2D
from luciole.tools.import_model import main as import_main
from tests.support import litert

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper

GOLDEN = Path(__file__).parent.parent / "golden" / "onnx"
FLOAT, INT64 = 1, 7
Ends = Mapping[str, tuple[int | str, ...]]
"""Shapes by name; an open extent has a name, too."""


def session(model: str | bytes, exact: bool = False) -> Any:
    """Load a model; without ``exact`` unsigned sums saturate on processors without VNNI."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def network(nodes: list[object], inputs: Ends, **constants: Array) -> bytes:
    """A model of float inputs; the last node's result is its output."""
    given = [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs.items()]
    output = helper.make_empty_tensor_value_info(nodes[-1].output[0])  # type: ignore[attr-defined]
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", given, [output], tensors)
    opsets = [helper.make_opsetid("", 18)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.onnx")), ids=lambda path: path.stem)
def test_what_pytorch_exports_computes_as_in_onnxruntime(path: Path) -> None:
    oracle = session(str(path))
    shape = [n if isinstance(n, int) else 3 for n in oracle.get_inputs()[0].shape]
    x = numbers(*shape)
    (got,) = luciole.Interpreter(luciole.load(path)).run({"x": x}).values()
    np.testing.assert_allclose(got, oracle.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_channels_are_moved_twice_in_a_whole_network() -> None:
    kinds = [op.kind for op in luciole.load(GOLDEN / "unet.onnx").graph.ops]
    assert kinds.count("TRANSPOSE") == 2
    assert "ADD" not in kinds


def test_a_batch_normalization_becomes_part_of_a_convolution() -> None:
    kinds = [op.kind for op in luciole.load(GOLDEN / "mobilenet_v2_block.onnx").graph.ops]
    assert sorted(kinds) == ["ADD", "CONV_2D", "CONV_2D", "DEPTHWISE_CONV_2D", *["TRANSPOSE"] * 2]


def test_what_exporters_spell_out_is_imported_in_the_canonical_form() -> None:
    nodes = [
        helper.make_node("Add", ["x", "three"], ["moved"]),
        helper.make_node("Clip", ["moved", "zero", "six"], ["held"]),
        helper.make_node("Mul", ["x", "held"], ["product"]),
        helper.make_node("Div", ["product", "six"], ["swished"]),
        helper.make_node("LayerNormalization", ["swished", "one"], ["normal"]),
        helper.make_node("Sub", ["normal", "three"], ["y"]),
    ]
    numbers_of = {"zero": 0, "three": 3, "six": 6}
    scalars: dict[str, Array] = {n: np.array(x, np.float32) for n, x in numbers_of.items()}
    content = network(nodes, {"x": (2, 5)}, one=np.ones(5, np.float32), **scalars)
    model = from_bytes(content).sound()
    kinds = ["HARD_SWISH", "MEAN", "SUB", "SQUARE", "MEAN", "ADD", "RSQRT", "MUL", "ADD"]
    assert [op.kind for op in model.graph.ops] == kinds
    x = numbers(2, 5)
    (got,) = luciole.Interpreter(model).run({"x": x}).values()
    np.testing.assert_allclose(got, session(content).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cnn", "unet", "mobilenet_v2_block"])
def test_nhwc_gives_inputs_and_outputs_their_channels_last(name: str, tmp_path: Path) -> None:
    written = tmp_path / "model.tflite"
    assert import_main([str(GOLDEN / f"{name}.onnx"), "-o", str(written), "--nhwc"]) == 0
    model = luciole.load(written)
    first = luciole.load(GOLDEN / f"{name}.onnx").graph.inputs[0]
    x = numbers(*(2 if n is None else n for n in first.shape))
    (got,) = luciole.Interpreter(model).run({"x": x.transpose(0, 2, 3, 1)}).values()
    (want,) = session(str(GOLDEN / f"{name}.onnx")).run(None, {"x": x})
    last = want.transpose(0, 2, 3, 1) if want.ndim == 4 else want
    np.testing.assert_allclose(got, last, rtol=1e-5, atol=1e-6)


def test_an_open_batch_size_stays_open() -> None:
    model = luciole.load(GOLDEN / "cnn.onnx")
    assert model.graph.inputs[0].shape == (None, 3, 32, 32)
    assert luciole.load(GOLDEN / "cnn.onnx", batch=5).graph.outputs[0].shape == (5, 10)


def test_shapes_are_computed_while_importing() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["v"]),
        helper.make_node("Concat", ["v", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {
        "first": np.array(0),
        "axes": np.array([0]),
        "rest": np.array([-1]),
    }
    model = from_bytes(network(nodes, {"x": (2, 3, 4)}, **constants)).model
    assert [op.kind for op in model.graph.ops] == ["RESHAPE"]
    assert model.graph.outputs[0].shape == (2, 12)


def test_quotients_of_open_extents_run_in_litert() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Div", ["n", "two"], ["half"]),
        helper.make_node("Sub", ["n", "half"], ["rest"]),
        helper.make_node("Div", ["rest", "two"], ["quarter"]),
        helper.make_node("Concat", ["quarter", "others"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {"first": np.array([0]), "two": np.array([2]), "others": np.array([3, -1])}
    data = network(nodes, {"x": ("n", 6)}, **constants)
    model, x = from_bytes(data).model, numbers(7, 6)
    expected = session(data).run(None, {"x": x})[0]
    assert expected.shape == (2, 3, 7)
    np.testing.assert_array_equal(luciole.Interpreter(model).run({"x": x})["y"], expected)
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = runtime.Interpreter(model_content=to_bytes(model, "tflite"))
    number = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(number, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(number, x)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(got, expected)


def test_quotients_of_other_int64_keep_all_bits() -> None:
    node = helper.make_node("Div", ["a", "b"], ["y"])
    ends = [helper.make_tensor_value_info(name, INT64, [3]) for name in ("a", "b", "y")]
    graph = helper.make_graph([node], "g", ends[:2], ends[2:])
    model = from_proto(helper.make_model(graph, ir_version=8))
    a, b = np.array([-7, 1 << 40, 7]), np.array([2, 3, -2])
    (got,) = luciole.Interpreter(model).run({"a": a, "b": b}).values()
    assert got.tolist() == [-3, (1 << 40) // 3, -3]


@pytest.mark.parametrize("attributes", [{}, {"ceil_mode": 1}, {"count_include_pad": 1}])
def test_means_over_windows_that_padding_cuts_are_those_of_a_pool(attributes: Any) -> None:
    sizes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    node = helper.make_node("AveragePool", ["x"], ["y"], **sizes, **attributes)
    data = network([node], {"x": (1, 4, 8, 9)})
    model = from_bytes(data).model
    assert "AVERAGE_POOL_2D" in [op.kind for op in model.graph.ops]
    x = numbers(1, 4, 8, 9)
    (got,) = luciole.Interpreter(model).run({"x": x}).values()
    np.testing.assert_allclose(got, session(data).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_the_reader_knows_onnx_by_its_fields() -> None:
    data = (GOLDEN / "gru.onnx").read_bytes()
    assert reader_of_bytes(data).name == "ONNX"
    for other in (b"\x08", b"\x08\x01\x09", b"operand {", b"PK\x03\x04", data[1:]):
        assert not OnnxReader().recognises(other)


def test_two_rules_of_one_operator_are_refused() -> None:
    with pytest.raises(TypeError, match="Gemm has two rules"):
        rule("Gemm")(lambda k, node: node[0])


def test_import_refuses_what_has_no_form_and_lists_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("Unheard", ["x"], ["a"]),
        helper.make_node("Det", ["x"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    path = tmp_path / "model.onnx"
    path.write_bytes(network(nodes, {"x": (2, 2)}))
    assert import_main([str(path), "-o", str(tmp_path / "out.circle")]) == 3
    said = capsys.readouterr().err
    assert "Unheard (there is no rule for it); Det (there is no rule for it)" in said
    assert not (tmp_path / "out.circle").exists()


@pytest.mark.parametrize("length", [5, 8, 13])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
def test_transforms_are_those_of_numpy(parts: int, inverse: int, length: int) -> None:
    node = helper.make_node("DFT", ["x", "n"], ["y"], axis=1, inverse=inverse)
    data = network([node], {"x": (2, 8, 3, parts)}, n=np.array(length))
    x = numbers(2, 8, 3, parts)
    given = x[..., 0] + 1j * (x[..., 1] if parts == 2 else np.zeros(1))
    (got,) = luciole.Interpreter(from_bytes(data).model).run({"x": x}).values()
    want = (np.fft.ifft if inverse else np.fft.fft)(given.astype(np.complex128), length, axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=0, atol=4e-6)


@pytest.mark.parametrize("length", [None, 5, 8, 13])
def test_transforms_of_half_of_the_bins_come_back(length: int | None) -> None:
    there = helper.make_node(
        "DFT", ["x", "n", "a"] if length else ["x", "", "a"], ["h"], onesided=1
    )
    constants = {"a": np.array(1), **({"n": np.array(length)} if length else {})}
    model = onnx.ModelProto.FromString(network([there], {"x": (2, 8, 3, 1)}, **constants))
    model.opset_import[0].version = 20
    back = helper.make_node("DFT", ["h", *there.input[1:]], ["y"], onesided=1, inverse=1)
    x = numbers(2, 8, 3, 1)
    (got,) = luciole.Interpreter(from_proto(model)).run({"x": x}).values()
    want = np.fft.rfft(x[..., 0].astype(np.float64), length, axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=0, atol=4e-6)
    model.graph.node.append(back)
    model.graph.output[0].name = "y"
    (got,) = luciole.Interpreter(from_proto(model)).run({"x": x}).values()
    real = np.fft.irfft(want, length, axis=1)
    np.testing.assert_allclose(got[..., 0], real, rtol=0, atol=4e-6)


# --------------------------------------------------------------------------------------- integers
def quantized(tmp_path: Path, form: str, activations: str) -> bytes:
    """A small network that onnxruntime's static quantizer made integers of."""
    from onnxruntime import quantization  # type: ignore[import-untyped]  # it has no types

    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v", "b"], ["d"], kernel_shape=[1, 1]),
        helper.make_node("Add", ["r", "d"], ["y"]),
    ]
    float_file = tmp_path / "float.onnx"
    constants = {"w": numbers(8, 3, 3, 3), "b": numbers(8), "v": numbers(8, 8, 1, 1)}
    model = onnx.ModelProto.FromString(network(nodes, {"x": (1, 3, 16, 16)}, **constants))
    model = onnx.shape_inference.infer_shapes(model)
    float_file.write_bytes(model.SerializeToString())
    records = iter(
        [{"x": np.random.default_rng(i).random((1, 3, 16, 16), np.float32)} for i in range(8)]
    )

    class Records(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Array] | None:
            return next(records, None)

    quantization.quantize_static(
        float_file,
        tmp_path / "integers.onnx",
        Records(),
        quant_format=getattr(quantization.QuantFormat, form),
        activation_type=getattr(quantization.QuantType, activations),
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    return (tmp_path / "integers.onnx").read_bytes()


@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_onnxruntimes_integers_become_integer_operators(
    tmp_path: Path, form: str, activations: str
) -> None:
    data = quantized(tmp_path, form, activations)
    model = from_bytes(data).model
    convolutions = [op for op in model.graph.ops if op.kind in ("CONV_2D", "ADD")]
    assert len(convolutions) == 3
    assert {op.output.dtype for op in convolutions} == {TensorType.INT8}
    written = tmp_path / "model.tflite"
    luciole.save(model, written)
    oracle = session(data, exact=activations == "QUInt8")
    x = np.random.default_rng(9).random((1, 3, 16, 16), np.float32)
    (want,) = oracle.run(None, {"x": x})
    (got,) = luciole.Interpreter(written).run({model.graph.inputs[0].name: x}).values()
    scale = np.diff(np.unique(np.concatenate([want.ravel(), got.ravel()]))).min()
    apart = np.abs(np.rint((got - want) / scale))
    assert apart.max() <= 1
    assert (apart == 0).mean() >= 0.99


@pytest.mark.parametrize("zero", [-128, 4])
def test_means_of_codes_halfway_are_rounded_to_even(zero: int) -> None:
    """LiteRT computes them so with its default kernels, its reference kernels round up."""
    to_codes = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"])
    nodes = [
        to_codes,
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["real"]),
        helper.make_node("AveragePool", ["real"], ["mean"], kernel_shape=[4, 2], strides=[4, 2]),
        helper.make_node("QuantizeLinear", ["mean", "scale", "zero"], ["result"]),
        helper.make_node("DequantizeLinear", ["result", "scale", "zero"], ["y"]),
    ]
    scale = np.array(0.25, np.float32)
    data = network(nodes, {"x": (1, 3, 16, 16)}, scale=scale, zero=np.array(zero, np.int8))
    codes = np.random.default_rng(0).integers(-128, 128, (1, 3, 16, 16))
    x = (codes - zero).astype(np.float32) * scale
    model = from_bytes(data).model
    assert "DEPTHWISE_CONV_2D" in [op.kind for op in model.graph.ops]
    (want,) = session(data).run(None, {"x": x})
    halfway = codes.reshape(1, 3, 4, 4, 8, 2).sum((3, 5)) % 8 == 4
    assert halfway.sum() > 5
    (got,) = litert(to_bytes(model, "tflite"), [x], "AUTO")
    np.testing.assert_array_equal(got, want)


def test_a_lone_quantize_rounds_halves_to_even() -> None:
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])]
    data = network(nodes, {"x": (4,)}, scale=np.array(1, np.float32), zero=np.array(0, np.int8))
    x = np.array([0.5, 1.5, 2.5, -0.5], np.float32)
    (got,) = luciole.Interpreter(from_bytes(data).model).run({"x": x}).values()
    np.testing.assert_array_equal(got, session(data).run(None, {"x": x})[0])


# ------------------------------------------------------------------------------------ bad files
def outside(location: str, **said: int) -> bytes:
    """A model with a constant of four floats in another file."""
    data = network([helper.make_node("Add", ["x", "c"], ["y"])], {"x": (4,)}, c=numbers(4))
    model = onnx.ModelProto.FromString(data)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in {"location": location, **{k: str(v) for k, v in said.items()}}.items():
        tensor.external_data.add(key=key, value=value)
    return bytes(model.SerializeToString())


def test_constants_in_files_below_the_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    numbers(6).tofile(tmp_path / "deep" / "data.bin")
    (tmp_path / "m.onnx").write_bytes(outside("deep/data.bin", offset=8, length=16))
    model = luciole.load(tmp_path / "m.onnx")
    (got,) = luciole.Interpreter(model).run({"x": np.zeros(4, np.float32)}).values()
    np.testing.assert_array_equal(got, numbers(6)[2:])


def test_constants_beside_the_file_may_take_more_than_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = helper.make_node("Conv", ["x", "c"], ["y"])
    proto = onnx.ModelProto.FromString(
        network([node], {"x": (1, 64, 4, 4)}, c=numbers(64, 64, 3, 3))
    )
    data = {"location": "data.bin", "size_threshold": 0}
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, **data)
    monkeypatch.setattr("luciole.importers.onnx.model.SPARE_BYTES", 0)
    assert [op.kind for op in luciole.load(tmp_path / "m.onnx").graph.ops].count("CONV_2D") == 1


@pytest.mark.parametrize(
    ("location", "said", "reason"),
    [
        ("../data.bin", {}, "only files below"),
        ("/etc/passwd", {}, "only files below"),
        ("..\\data.bin", {}, "only files below"),
        ("", {}, "only files below"),
        ("link.bin", {}, "links are not followed"),
        ("folder", {}, "that is no file"),
        ("none.bin", {}, "No such file"),
        ("data.bin", {"offset": 12}, "takes 16 bytes from 12 on"),
        ("data.bin", {"length": 8}, "8 are said"),
        ("data.bin", {"offset": -4}, "its offset is '-4'"),
    ],
)
def test_import_refuses_files_outside(
    tmp_path: Path, location: str, said: dict[str, int], reason: str
) -> None:
    inner = tmp_path / "inner"
    (inner / "folder").mkdir(parents=True)
    for folder in (tmp_path, inner):
        numbers(4).tofile(folder / "data.bin")
    (inner / "link.bin").symlink_to(tmp_path / "data.bin")
    (inner / "m.onnx").write_bytes(outside(location, **said))
    with pytest.raises(FormatError, match=reason):
        luciole.load(inner / "m.onnx")


def recursive() -> bytes:
    """A function that calls itself twice."""
    body = [helper.make_node("F", ["a"], ["b"], domain="own") for _ in range(2)]
    body[1].input[0], body[1].output[0] = "b", "c"
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["a"], ["c"], body, opsets)
    given, taken = (helper.make_tensor_value_info(n, FLOAT, [2]) for n in "xy")
    graph = helper.make_graph(
        [helper.make_node("F", ["x"], ["y"], domain="own")], "g", [given], [taken]
    )
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    return bytes(model.SerializeToString())


def huge() -> bytes:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["c"]),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    return network(nodes, {"x": (1,)}, shape=np.array([1 << 20, 1 << 20]))


def short() -> bytes:
    data = network([helper.make_node("Add", ["x", "c"], ["y"])], {"x": (4,)}, c=numbers(4))
    model = onnx.ModelProto.FromString(data)
    model.graph.initializer[0].dims[0] = 1 << 40
    return bytes(model.SerializeToString())


def squares(kind: str, rank: int = 4, **attributes: Any) -> Callable[[], bytes]:
    """A node whose rule makes arrays as large as an input says that it is."""
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    return lambda: network([node], {"x": (1, 1, 60000, 60000)[-rank:]})


UNEVEN: dict[str, Any] = {
    "kernel_shape": [9, 9],
    "strides": [2, 2],
    "pads": [4] * 4,
    "ceil_mode": 1,
    "count_include_pad": 1,
}
"""A pool whose last windows reach beyond the padding."""


def repeated() -> bytes:
    """A loop around a constant of 4 MB."""
    tensor = onnx.numpy_helper.from_array(np.zeros(1 << 20, np.float32), "k")
    nodes = [
        helper.make_node("Constant", [], ["k"], value=tensor),
        helper.make_node("Identity", ["going"], ["goes"]),
        helper.make_node("Add", ["state", "k"], ["next"]),
    ]
    given = [helper.make_empty_tensor_value_info(n) for n in ("step", "going", "state")]
    body = helper.make_graph(
        nodes, "b", given, [helper.make_empty_tensor_value_info(n) for n in ("goes", "next")]
    )
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)
    return network([loop], {"x": (1,)}, count=np.array(256))


def wide_padding() -> bytes:
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1 << 40] * 4)
    return network([node], {"x": (1, 1, 4, 4)}, w=numbers(1, 1, 3, 3))


def twice() -> bytes:
    nodes = [helper.make_node(kind, ["x"], ["y"]) for kind in ("Relu", "Neg")]
    return network(nodes, {"x": (1,)})


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (recursive, "functions stand in each other"),
        (huge, "computing it takes"),
        (short, "holds 16, not"),
        (repeated, "computing it takes"),
        (squares("EyeLike", rank=2), "computing it takes"),
        (squares("Trilu"), "computing it takes"),
        (squares("AveragePool", **UNEVEN), "computing it takes"),
        (wide_padding, "more than 32 bits"),
        (twice, "two values have the name 'y'"),
    ],
)
def test_import_refuses_what_would_take_all_memory(
    make: Callable[[], bytes], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luciole.importers.onnx.model.SPARE_BYTES", 64 << 20)
    with pytest.raises(LucioleError, match=reason):
        from_bytes(make())


def test_damaged_files_are_refused_with_a_sentence() -> None:
    chance, whole = random.Random(3), (GOLDEN / "gru.onnx").read_bytes()
    said = []
    for _ in range(75):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 2, 8])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            from_bytes(bytes(damaged))
        except LucioleError as error:
            said.append(str(error))
    assert 20 < len(said) < 75
    assert not any("\n" in sentence for sentence in said)


def test_names_in_functions_that_are_no_text_are_refused() -> None:
    body = helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.5)
    body.attribute[0].ClearField("f")
    body.attribute[0].ref_attr_name = "slope"
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["a"], ["b"], [body], opsets, ["slope"])
    call = helper.make_node("F", ["x"], ["y"], domain="own", slope=0.25)
    model = onnx.ModelProto.FromString(network([call], {"x": (2,)}))
    model.functions.append(function)
    model.opset_import.append(opsets[1])
    whole = model.SerializeToString()
    x = np.array([-4, 4], np.float32)
    (got,) = luciole.Interpreter(from_bytes(whole).model).run({"x": x}).values()
    np.testing.assert_array_equal(got, [-1, 4])
    with pytest.raises(FormatError, match="the file is damaged: UnicodeDecodeError"):
        from_bytes(whole.replace(b"alpha", b"al\xc7ha"))


def test_attributes_of_another_type_are_refused() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis="last")
    with pytest.raises(UnsupportedError, match="attribute axis is STRING, not INT"):
        from_bytes(network([node], {"x": (2, 3)}))


def test_old_operator_sets_are_refused() -> None:
    model = onnx.ModelProto.FromString((GOLDEN / "gru.onnx").read_bytes())
    model.opset_import[0].version = 5
    with pytest.raises(UnsupportedError, match="operator set 5"):
        from_proto(model)


# ------------------------------------------------------------------------------------------ names
def test_outputs_keep_the_names_that_the_file_gives_them() -> None:
    """Behind a function's body, a loop, and what does nothing; an inner tensor has a name, too."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "row"], ["y"]),
            helper.make_node("Identity", ["y"], ["sum_out"]),
        ],
        "body",
        [helper.make_empty_tensor_value_info(n) for n in ("sum_in", "row")],
        [helper.make_empty_tensor_value_info(n) for n in ("sum_out", "y")],
    )
    nodes = [
        helper.make_node("HannWindow", ["size"], ["window"]),
        helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "zero"]),
        helper.make_node("Scan", ["start", "x"], ["last", "y"], num_scan_inputs=1, body=body),
        helper.make_node("Relu", ["last"], ["inner"]),
        helper.make_node("Identity", ["inner"], ["same"]),
        helper.make_node("Identity", ["x"], ["given"]),
    ]
    constants = {"size": np.array(4), "start": np.zeros(3, np.float32)}
    model = onnx.ModelProto.FromString(network(nodes, {"x": (2, 3)}, **constants))
    names = ["window", "scale", "last", "y", "same", "given"]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names)
    content = model.SerializeToString()
    x = numbers(2, 3)
    results = luciole.Interpreter(from_bytes(content).model).run({"x": x})
    assert list(results) == names
    for got, want in zip(results.values(), session(content).run(names, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("start", [-9, -4, -3, -1, 0, 2, 9])
@pytest.mark.parametrize("end", [-(2**31), -4, -2, 0, 3, 9])
@pytest.mark.parametrize("step", [-2, -1, 1, 2])
def test_slices_that_begin_outside_are_those_of_onnxruntime(
    start: int, end: int, step: int
) -> None:
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    parts = {"s": start, "e": end, "a": 0, "t": step}
    data = network([node], {"x": (3, 2)}, **{n: np.array([k]) for n, k in parts.items()})
    x = numbers(3, 2)
    (got,) = luciole.Interpreter(from_bytes(data).model).run({"x": x}).values()
    np.testing.assert_array_equal(got, session(data).run(None, {"x": x})[0])


def test_layers_that_share_a_filter_share_it_once_its_axes_are_exchanged() -> None:
    """A factor behind one of them is not the other's."""
    w = numbers(5, 3, 2, 2)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["x", "w"], ["b"]),
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[2, 2]),
        helper.make_node("Mul", ["b", "factor"], ["d"]),
        helper.make_node("GlobalMaxPool", ["a"], ["p"]),
        helper.make_node("GlobalMaxPool", ["c"], ["q"]),
        helper.make_node("GlobalMaxPool", ["d"], ["r"]),
        helper.make_node("Concat", ["p", "q", "r"], ["y"], axis=0),
    ]
    content = network(nodes, {"x": (1, 3, 6, 6)}, w=w, factor=2 * numbers(5, 1, 1))
    x = numbers(1, 3, 6, 6)
    (expected,) = session(content).run(None, {"x": x})
    model = from_bytes(content).model
    np.testing.assert_allclose(luciole.Interpreter(model).run(x)["y"], expected, rtol=1e-5)
    filters = [op.required(1) for op in model.graph.ops if isinstance(op, Conv2D)]
    assert sorted(map(filters.count, filters)) == [1, 2, 2]
