"""Data and networks at the edge of what can be quantized: a sound file, or a sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.errors import InputError
from luciole.ir import Array, LucioleError, Model, TensorType, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape as ShapeOf
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from luciole.ir.quantization import Affine, stored_parameters
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.schemes import Rounding
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.runs import integers_of_litert, quantized, records
from tests.networks import network, random
from tests.support import data_path

SCHEMES = ["int8", "uint8", "w4a8", "int16x8"]
TWO = ["uint8", "int16x8"]
"""Integers with zero points, and those without."""


def small(change: Callable[[Array], Array], bias: float = 0.5) -> Model:
    """A convolution, a depthwise one and a dense layer, the first one's weights changed."""
    b = Builder()
    x = b.graph.add_input("x", (1, 4, 4, 3))
    weights = b.constant(change(random(3, 6, 3, 3, 3) * np.float32(0.3)))
    y = b.add(
        Conv2D(
            x,
            weights,
            b.constant(np.full(6, bias, np.float32)),
            activation=Act.RELU,
            stride_h=1,
            stride_w=1,
        )
    )
    d = b.add(
        DepthwiseConv2D(
            y, b.weights(1, 3, 3, 6), b.weights(6), depth_multiplier=1, stride_h=1, stride_w=1
        )
    )
    shape = b.constant(np.array([-1, 96], np.int32))
    flat = b.add(Reshape(d, shape, new_shape=(-1, 96)))
    b.graph.outputs = [b.add(FullyConnected(flat, b.weights(4, 96), b.weights(4)))]
    return b.model


def as_it_is(weights: Array) -> Array:
    return weights


def with_dead_outputs(weights: Array) -> Array:
    weights[[1, 4]] = 0
    return weights


def without_any(weights: Array) -> Array:
    return np.zeros_like(weights)


def with_a_giant(weights: Array) -> Array:
    weights[2] *= 1e6
    return weights


def error(model: Model, made: Model, data: dict[str, Array]) -> float:
    """The largest difference of answers, as a share of the float network's largest answer."""
    ours, wanted = luciole.Interpreter(made), luciole.Interpreter(model)
    worst, most = 0.0, 1e-9
    for k in range(min(4, len(data["x"]))):
        one = {"x": data["x"][k : k + 1]}
        (a,), (b,) = ours.run(one).values(), wanted.run(one).values()
        worst, most = max(worst, float(np.abs(a - b).max())), max(most, float(np.abs(b).max()))
    return worst / most


@pytest.mark.parametrize(
    ("scheme", "change", "bias"),
    [
        *((scheme, with_dead_outputs, 0.5) for scheme in SCHEMES),
        *((scheme, without_any, bias) for scheme in ("w4a8", "int16x8") for bias in (0.0, 0.5)),
        *((scheme, as_it_is, 1e4) for scheme in ("int8", "int16x8")),
    ],
)
def test_dead_channels_and_large_biases_give_a_sound_file(
    scheme: str, change: Callable[[Array], Array], bias: float, tmp_path: Path
) -> None:
    model = small(change, bias)
    data = records(model, 12)
    made = luciole.quantize(model, data, scheme=scheme, proof=False).model
    check_scales(made)
    assert error(model, made, data) < 0.12
    check_with_litert(made, data, tmp_path / "q.tflite")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("rounding", ["nearest", "output_aware"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_layer_without_weights_keeps_its_bias(scheme: str, rounding: Rounding) -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 8))
    bias = np.array([0.5, -0.25, 0.0], np.float32)
    b.graph.outputs = [
        b.add(FullyConnected(x, b.constant(np.zeros((3, 8), np.float32)), b.constant(bias)))
    ]
    data = {"x": random(3, 20, 8)}
    made = luciole.quantize(b.model, data, scheme=scheme, rounding=rounding, proof=False).model
    (found,) = luciole.Interpreter(made).run({"x": data["x"][:1]}).values()
    np.testing.assert_allclose(found[0], bias, atol=0.75 / 255 / 2 + 1e-6)


def check_scales(model: Model) -> None:
    """Every scale is what runtimes take."""
    for value in model.graph.values:
        scales, points = stored_parameters(value)
        assert ((scales > 0) & np.isfinite(scales)).all(), value.name
        limits = (
            np.iinfo(np.int32 if value.dtype == TensorType.INT64 else value.dtype.name.lower())
            if len(scales) and value.dtype != TensorType.INT4
            else None
        )
        if limits is not None:
            assert ((points >= limits.min) & (points <= limits.max)).all(), value.name


def check_with_litert(made: Model, data: dict[str, Array], path: Path) -> None:
    for op in made.graph.ops:  # LiteRT's reference resolver stops there
        op.version = min(op.version, 6) if isinstance(op, DepthwiseConv2D) else op.version
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    ours.run({"x": data["x"][:1]})
    theirs = integers_of_litert(path, data["x"][:1])
    for number, value in enumerate(ours.graph.values):
        if value.producer is not None and value.name in theirs:
            np.testing.assert_array_equal(ours.get_tensor(number), theirs[value.name], value.name)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_giant_channel_gives_a_sound_file(scheme: str, tmp_path: Path) -> None:
    model = small(with_a_giant)
    data = records(model, 12)
    made = luciole.quantize(model, data, scheme=scheme, proof=False).model
    check_scales(made)
    check_with_litert(made, data, tmp_path / "q.tflite")


@pytest.mark.parametrize("scheme", TWO)
@pytest.mark.parametrize("shift", [-5.0, 300.0])
def test_ranges_without_zero_are_widened_to_it(scheme: str, shift: float) -> None:
    model = small(as_it_is)
    data = {"x": records(model, 12)["x"] * np.float32(0.5) + np.float32(shift)}
    made = luciole.quantize(model, data, scheme=scheme, proof=False).model
    (quantize,) = [op for op in made.graph.ops if op.kind == "QUANTIZE"]
    low, high = Affine.of(quantize.output, "the input").range
    assert low[0] <= 0 <= high[0]
    assert error(model, made, data) < 0.15


@pytest.mark.parametrize("scheme", TWO)
@pytest.mark.parametrize("number", [0.0, 3.25, -2.0])
def test_constant_records_give_a_sound_file(scheme: str, number: float) -> None:
    model = small(as_it_is)
    data = {"x": np.full((5, 4, 4, 3), number, np.float32)}
    made = luciole.quantize(model, data, scheme=scheme).model
    check_scales(made)
    assert error(model, made, data) < 0.12


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_record_gives_a_sound_file(scheme: str) -> None:
    model = small(as_it_is)
    data = records(model, 1)
    made = luciole.quantize(model, data, scheme=scheme).model
    check_scales(made)
    assert error(model, made, data) < 0.12


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_data_that_are_no_numbers_are_refused(scheme: str, wrong: float) -> None:
    model = small(as_it_is)
    data = records(model, 4)
    data["x"][2, 1, 0, 0] = wrong
    with pytest.raises(LucioleError, match="record 2"):
        luciole.quantize(model, data, scheme=scheme)


@pytest.mark.parametrize("scheme", [*SCHEMES, "dynamic", "weights", "float16"])
def test_weights_that_are_no_numbers_are_refused(scheme: str) -> None:
    def broken(weights: Array) -> Array:
        weights[1, 1, 1, 1] = np.nan
        return weights

    model = small(broken)
    data = records(model, 4) if scheme in SCHEMES else None
    with pytest.raises(LucioleError, match=r"nan|NaN|finite"):
        luciole.quantize(model, data, scheme=scheme)


def test_weights_beyond_half_precision_stay_as_they_are() -> None:
    model = small(with_a_giant)
    result = luciole.quantize(model, scheme="float16")
    reasons = [layer.skipped for layer in result.report.layers]
    assert reasons[1:] == [None, None]
    assert reasons[0] is not None
    assert "half precision 65504" in reasons[0]
    assert error(model, result.model, records(model, 4)) < 0.01


def test_numbers_that_overflow_between_operators_are_refused() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4))
    big = b.constant(np.full((1, 4), 1e38, np.float32))
    y = b.add(Mul(b.add(Mul(x, big)), big))
    b.graph.outputs = [b.add(FullyConnected(b.add(Add(y, x)), b.weights(2, 4), None))]
    with pytest.raises(LucioleError, match=r"on integers: MUL .*: it reads or gives infinities"):
        luciole.quantize(b.model, records(b.model, 4), scheme="int8")


@pytest.mark.parametrize("scheme", [*SCHEMES, "dynamic"])
def test_a_quantized_file_is_refused_by_its_first_integer_tensor(scheme: str) -> None:
    model = luciole.load(data_path("models/resnet8_int8.tflite"))
    data = {model.graph.inputs[0].name: np.zeros((2, 32, 32, 3), np.float32)}
    given = {name: array.astype(np.int8) for name, array in data.items()}
    sentence = f"quantized already: tensor '{model.graph.inputs[0].name}' is INT8"
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(model, None if scheme == "dynamic" else given, scheme=scheme)


@pytest.mark.parametrize(
    ("before", "scheme"),
    [
        *(("dynamic", one) for one in ("int8", "int16x8", "dynamic", "weights", "float16")),
        *((before, scheme) for before in ("weights", "float16") for scheme in ("int8", "dynamic")),
    ],
)
def test_files_of_smaller_weights_alone_are_taken(before: str, scheme: str) -> None:
    model = small(as_it_is)
    once = luciole.quantize(model, scheme=before, proof=False).model
    data = records(model, 12) if scheme in SCHEMES else None
    made = luciole.quantize(once, data, scheme=scheme, proof=False).model
    assert error(model, made, records(model, 12)) < 0.15


def test_a_variable_beside_layers_stays_as_it_is() -> None:
    """VAR_HANDLE reads nothing: the dense layer behind what it holds becomes integers."""
    b = Builder()
    x = b.graph.add_input("x", (1, 8))
    handle = b.graph.append(VarHandle(shared_name="state", container=""), "handle").output
    b.graph.append(AssignVariable(handle, x))
    held = b.graph.add_value(Value("held", TensorType.FLOAT32, (1, 8)))
    b.graph.append(ReadVariable(handle), results=[held])
    b.graph.outputs = [b.add(FullyConnected(held, b.weights(4, 8), b.weights(4)))]
    data = records(b.model, 40)
    made = luciole.quantize(b.model, data, scheme="int8").model
    assert [op.kind for op in made.graph.ops if op.results[:1] and op.output.dtype.name == "INT8"]
    assert error(b.model, made, data) < 0.02


def test_quantize_refuses_records_for_a_network_without_an_input() -> None:
    b = Builder()
    handle = b.graph.append(VarHandle(shared_name="state", container=""), "handle").output
    b.graph.outputs = [b.add(ShapeOf(handle, out_type=TensorType.INT32))]
    with pytest.raises(InputError, match="the network has no input: nothing can be learned"):
        luciole.quantize(b.model, {}, scheme="int8")


def test_a_network_without_signature_keeps_none() -> None:
    model = images()
    assert model.signatures == []
    made = quantized(model, scheme="int8", ranges="min_max")
    assert made.signatures == []
    assert [v.name for v in made.graph.inputs] == ["x"]


def test_a_network_without_float_operators_has_nothing_to_quantize() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4), TensorType.INT32)
    shape = b.constant(np.array([2, 2], np.int32))
    b.graph.outputs = [b.add(Reshape(x, shape, new_shape=(2, 2)))]
    with pytest.raises(QuantizeError, match="nothing to quantize"):
        luciole.quantize(b.model, {"x": np.zeros((3, 4), np.int32)}, scheme="int8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network and records, which is where programs run."""
    luciole.save(network(), tmp_path / "m.tflite")
    np.save(tmp_path / "x.npy", records(network())["x"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(words: str, capsys: pytest.CaptureFixture[str], code: int = 1) -> str:
    """Run the program, which writes nothing; what it says."""
    from luciole.tools.quantize import main

    before = sorted(Path().iterdir())
    assert main(words.split()) == code
    assert sorted(Path().iterdir()) == before
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("luciole: error: ")
    return line


INT8 = "m.tflite -o q.tflite --scheme int8 --data"


@pytest.mark.parametrize("scheme", ["int8", "uint8", "w4a8", "int16x8", "mixed"])
def test_nothing_is_half_written(
    scheme: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = np.load(folder / "x.npy")
    data[1, 1] = np.nan
    np.save(folder / "nan.npy", data)
    words = f"m.tflite -o q.tflite --scheme {scheme} --report r.json --data nan.npy"
    assert "record 1 of the array is nan" in refused(words, capsys)


@pytest.mark.parametrize(
    "dtype", ["int32", "int64", "float16", "bool", "complex64", "<U4", "datetime64[s]"]
)
def test_records_of_another_element_type_are_refused_in_a_sentence(
    dtype: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = np.abs(np.load(folder / "x.npy"))
    given = data.astype("int64").astype(dtype) if dtype.startswith("date") else data.astype(dtype)
    np.save(folder / "other.npy", given)
    assert "'x' takes float32" in refused(f"{INT8} other.npy", capsys)


@pytest.mark.parametrize("kind", ["one", "constant", "zero", "far from 0"])
def test_a_program_takes_records_that_say_little(kind: str, folder: Path) -> None:
    from luciole.tools.quantize import main

    x = np.load(folder / "x.npy")
    given = {
        "one": x[:1],
        "constant": np.full_like(x, 3.5),
        "zero": np.zeros_like(x),
        "far from 0": x * np.float32(0.1) + 300,
    }
    np.save(folder / "few.npy", given[kind])
    assert main(f"{INT8} few.npy".split()) == 0
    check_scales(luciole.load(folder / "q.tflite"))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("--scheme int8 --data x.npy --seed -1", 2, "seed is -1"),
        ("--scheme int8 --data x.npy --ranges percentile:200", 1, "50 to 100 are possible"),
        ("--scheme int8 --data x.npy --ranges percentile:nan", 1, "50 to 100 are possible"),
        ("--scheme int8 --data x.npy --ranges moving_average:2", 1, "0 to 1 are possible"),
        ("--scheme int8 --data x.npy --ranges entropy:3", 1, "this rule takes no number"),
        (
            "--scheme mixed --data x.npy --target-drop nan",
            2,
            "target_drop is nan: 0 and more are possible",
        ),
        (
            "--scheme mixed --data x.npy --target-drop -1",
            2,
            "target_drop is -1.0: 0 and more are possible",
        ),
        ("--scheme int8 --data x.npy --report q.tflite", 2, "q.tflite is named twice"),
        ("--scheme int8 --data x.npy --report ./x.npy", 2, "./x.npy is named twice"),
        ("--scheme int8 --data x.npy --save-ranges m.tflite", 2, "m.tflite is named twice"),
        ("--simulate --rounding nearest", 2, "learn nothing: leave --rounding out"),
        ("--requantize uint8 --data x.npy", 2, "learn nothing: leave --data out"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(
    words: str, code: int, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refused(f"m.tflite -o q.tflite {words}", capsys, code)


@cache
def of_integers() -> bytes:
    """The file of a network whose inputs and outputs are integers, too."""
    ends = {"input_type": "int8", "output_type": "int8"}
    return to_bytes(quantized(network(), scheme="int8", ranges="min_max", **ends))


@pytest.mark.parametrize("words", ["--simulate", "--requantize uint8", "--scheme dynamic"])
@pytest.mark.parametrize(
    ("scale", "point"),
    [(0.0, 0), (-0.1, 0), (np.inf, 0), (np.nan, 0), (0.1, 2**40)],
)
def test_files_whose_scales_cannot_be_are_refused(
    words: str, scale: float, point: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = from_bytes(of_integers())
    (value,) = model.graph.outputs
    assert value.quantization is not None
    value.quantization.scale = np.array([scale], np.float32)
    value.quantization.zero_point = np.array([point])
    luciole.save(model, folder / "lies.tflite", check=False)
    line = refused(f"lies.tflite -o q.tflite {words}", capsys)
    assert "scale" in line or "zero point" in line or "quantized already" in line


def test_report_of_a_conversion_is_written(folder: Path) -> None:
    from luciole.tools.quantize import main

    luciole.save(quantized(network(), scheme="int8"), folder / "q.tflite")
    words = "q.tflite -o s.tflite --simulate --report r.json --strip-names"
    assert main(words.split()) == 0
    assert (folder / "r.json").read_text().startswith("{")
    names = [v.name for v in luciole.load(folder / "s.tflite").graph.values]
    assert max(map(len, names)) < 8
