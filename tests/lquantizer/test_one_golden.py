"""Samsung ONE's own expectations of its quantizer: every scale, zero point, weight and bias."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, Value
from luciole.ir.dtypes import array_type
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.elementwise_unary import Floor
from luciole.ir.ops.pad import PadV2
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine, noted_range
from luciole.ir.value import Buffer, has_batch_axis
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.one_config import STEPS, OneOptions
from luciole.lquantizer.formats.one_numbers import of_limits
from luciole.lquantizer.network.result import Result
from tests.networks import network, random
from tests.support import data_path

NAMES = [
    "Add_002",
    "AveragePool2D_000",
    "Concatenation_001",
    "Conv2D_004",
    "DepthwiseConv2D_002",
    "FullyConnected_003",
    "InstanceNorm_001",
    "MaxPool2D_000",
    "Mean_000",
    "Mul_001",
    "PRelu_001",
    "ReLU_000",
    "Split_000",
    "TransposeConv_001",
]
COUNTED = {"fake_quantization": 20, "record_minmax": 68, "quantization": 184, "wo_quantization": 4}
"""Files that are compared, by what they tell; ``.json``, of an operand that is not there, is
not."""


def recipe(name: str) -> Model:
    kind = "circle" if name == "InstanceNorm_001" else "tflite"
    return luciole.load(data_path("recipes") / kind / name / "test.recipe")


def given(folder: Path, graph: Graph) -> dict[str, Array]:
    """Read the records of a case: a line for each input."""
    files = sorted(folder.glob("*.txt"), key=lambda path: int(path.stem))
    records = []
    for file in files:
        lines = [line for line in file.read_text().splitlines() if line.strip()]
        rows = [np.array(line.replace(",", " ").split(), np.float32) for line in lines]
        records.append([r.reshape(v.dims) for r, v in zip(rows, graph.inputs, strict=True)])
    found = {}
    for number, value in enumerate(graph.inputs):
        join = np.concatenate if has_batch_axis(value) else np.stack
        found[value.name] = join([record[number] for record in records])
    return found


@cache
def result_of(
    name: str, config: bool, granularity: str, dtype: str, other: str | None = None
) -> Result:
    """Quantize a network of the golden files as they say, on the records of another case if so."""
    root, model = data_path("quantizer_golden"), recipe(name)
    folder = root / "test_inputs" / (f"{name}_config" if config else name) / granularity / dtype
    if other is not None:
        folder = root / "test_inputs" / name / other
    content = None
    if config:
        text = (root / "config_files" / name / granularity / dtype / "qconf.json").read_text()
        content = json.loads(text)
    how: dict[str, Any] = {"scheme": dtype, "granularity": granularity, "config": content}
    return luciole.quantize(model, given(folder, model.graph), compatible="one", proof=False, **how)


def files_of(name: str) -> list[Path]:
    root = data_path("quantizer_golden") / "expected_outputs"
    found = [p for end in ("", "_config") for p in (root / f"{name}{end}").rglob("*.json")]
    return sorted(path for path in found if path.stem != ".json")


def result_for(path: Path) -> Result:
    root = data_path("quantizer_golden") / "expected_outputs"
    name, granularity, dtype, deeper = path.relative_to(root).parts[:4]
    if deeper == "uint8":  # put a folder too deep, where ONE's own test does not look
        return result_of("DepthwiseConv2D_002", True, granularity, dtype, "layer/uint8")
    if path.parent.name == "wo_quantization":
        scheme = {"int8": "weights", "int16": "weights_int16"}[dtype]
        return luciole.quantize(recipe(name), compatible="one", scheme=scheme)
    return result_of(name.removesuffix("_config"), name.endswith("_config"), granularity, dtype)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_the_golden_files(name: str) -> None:
    for path in files_of(name):
        result, expected = result_for(path), json.loads(path.read_text())
        compare = _extremes if path.parent.name == "record_minmax" else _tensor
        compare(result, path.stem, expected, str(path))


def _extremes(result: Result, name: str, expected: dict[str, Any], where: str) -> None:
    assert result.ranges is not None
    found = result.ranges.tensors[name]
    wanted = expected["min"], expected["max"]
    np.testing.assert_allclose((found.low, found.high), wanted, 1e-5, 1e-5, err_msg=where)


def _tensor(result: Result, name: str, expected: dict[str, Any], where: str) -> None:
    """Compare as ONE's own test does, scales 1e-5 relative instead of absolute."""
    value = next(v for v in result.model.graph.values if v.name == name)
    if "scale" not in expected:
        assert value.data is not None
        codes = value.data
        real = Affine.of(value, name).decode(codes) if value.quantization else codes
        np.testing.assert_allclose(real, expected["weights"], 1e-5, 1e-5, err_msg=where)
        return
    affine = Affine.of(value, name)
    np.testing.assert_allclose(affine.scale, np.ravel(expected["scale"]), 1e-5, err_msg=where)
    points = np.broadcast_to(np.ravel(expected.get("zero_point", 0)), affine.scale.shape)
    np.testing.assert_allclose(affine.zero_point, points, 0, 1, err_msg=where)
    if "weights" in expected:
        assert value.data is not None
        off = 5 if value.dtype == TensorType.INT64 else 1
        np.testing.assert_allclose(value.data, expected["weights"], 0, off, err_msg=where)


def test_all_files_are_compared() -> None:
    paths = [path for name in NAMES for path in files_of(name)]
    assert Counter(path.parent.name for path in paths) == COUNTED


def test_every_network_is_written_and_read() -> None:
    """ONE's own reader takes the file format; UINT8 with one scale for each layer runs here, too,
    and is as close to the float network as its steps let it be.
    """
    for name in NAMES:
        folder = data_path("quantizer_golden") / "test_inputs" / name
        for case in sorted(folder.glob("*/*")):
            result = result_of(name, False, case.parent.name, case.name)
            content = to_bytes(result.model)
            assert to_bytes(from_bytes(content)) == content


def cases() -> list[tuple[str, bool, str, str]]:
    """Networks that ONE's tests quantize: by name, config, granularity and type."""
    root = data_path("quantizer_golden") / "test_inputs"
    folders = sorted(path.relative_to(root).parts for path in root.glob("*/*/*"))
    return [(n.removesuffix("_config"), n.endswith("_config"), g, t) for n, g, t in folders]


def test_every_network_runs_here() -> None:
    """Some operators by kernels on integers, others in floats: answers are within two steps."""
    assert len(cases()) == 59
    for name, config, granularity, dtype in cases():
        model = recipe(name)
        folder = data_path("quantizer_golden") / "test_inputs"
        folder = folder / (f"{name}_config" if config else name) / granularity / dtype
        records = given(folder, model.graph)
        work = result_of(name, config, granularity, dtype).model
        codes = {v.name: Affine.of(v, v.name).encode(records[v.name]) for v in work.graph.inputs}
        answers = outputs_of(Interpreter(work), codes)
        expected = outputs_of(Interpreter(model), records)
        for value, exact in zip(work.graph.outputs, expected.values(), strict=True):
            real = Affine.of(value, value.name).decode(answers[value.name])
            case = f"{name} {granularity} {dtype}"
            assert np.abs(real - exact).max() < 0.03 * np.ptp(exact), case


def test_any_network_becomes_a_file_or_is_refused() -> None:
    """Of all kinds of operators: some of ONE's recipes, on two random records each."""
    made = 0
    for path in sorted(data_path("recipes").glob("*/*/test.recipe"))[::9]:
        try:
            model = luciole.load(path)
            records = {v.name: _two(v) for v in model.graph.inputs}
            content = to_bytes(
                luciole.quantize(model, records, compatible="one", proof=False).model
            )
        except LucioleError:
            continue
        assert to_bytes(from_bytes(content)) == content
        made += 1
    assert made >= 12


def _two(value: Value) -> Array:
    shape = value.shape[1:] if has_batch_axis(value) else value.shape
    numbers = random(1, 2, *(extent or 1 for extent in shape))
    return numbers.astype(array_type(value.dtype))


def inside(model: Model, name: str) -> Affine:
    return Affine.of(next(v for v in model.graph.values if v.name == name), name)


def chain(*kinds: Any) -> Model:
    """Build unary operators, or what functions append, behind each other."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value: Value = graph.add_input("x", (1, 8))
    for number, kind in enumerate(kinds):
        value = graph.append(kind(value), f"y{number}").output
    graph.outputs = [value]
    return model


def one(model: Model, **choices: Any) -> Result:
    records = random(1, 6, 8) * 3
    return luciole.quantize(model, records, compatible="one", proof=False, **choices)


def test_results_of_known_range_have_known_scales() -> None:
    cases = [(Logistic, 1 / 256, 0), (Tanh, 2 / 256, 128), (Softmax, 1 / 255, 0)]
    for kind, scale, point in cases:
        affine = inside(one(chain(kind)).model, "y0")
        assert (affine.scale[0], affine.zero_point[0]) == (np.float32(scale), point)
    wide = inside(one(chain(Softmax), scheme="int16").model, "y0")
    assert wide.scale[0] == np.float32(1 / 32767)


def test_an_operator_that_reads_a_tensor_twice_has_one_quantize_of_it() -> None:
    config = {"layers": [{"name": "y0", "dtype": "int16", "granularity": "channel"}]}
    ops = one(chain(lambda value: Mul(value, value)), config=config).model.graph.ops
    assert [op.kind for op in ops] == ["QUANTIZE", "MUL", "QUANTIZE"]
    assert ops[1].operands == (ops[0].output, ops[0].output)


def test_known_scales_go_forward_and_through_other_types() -> None:
    def reshaped(value: Value) -> Reshape:
        shape = value.graph.add_constant("shape", np.array([2, 4], np.int32))  # type: ignore[union-attr]
        return Reshape(value, shape, new_shape=(2, 4))

    config = {"layers": [{"names": ["y1", "y2"], "dtype": "int16", "granularity": "channel"}]}
    result = one(chain(Logistic, reshaped, Tanh), config=config)
    assert inside(result.model, "y0").scale[0] == np.float32(1 / 256)
    assert inside(result.model, "y0_Quantize").scale[0] == np.float32(1 / 32768)
    assert inside(result.model, "y1").scale[0] == np.float32(1 / 32768)
    assert [v.dtype.name for v in result.model.graph.outputs] == ["UINT8"]


def test_whole_numbers_have_a_whole_scale() -> None:
    assert inside(one(chain(Floor)).model, "y0").scale[0] == 1


def test_what_pads_a_pool_stretches_no_range() -> None:
    def padded(value: Value) -> PadV2:
        graph = value.graph
        assert graph is not None
        paddings = graph.add_constant("paddings", np.array([[0, 0], [1, 1]], np.int32))
        least = graph.add_constant("least", np.array([np.finfo(np.float32).min], np.float32))
        return PadV2(value, paddings, least)

    result = one(chain(padded))
    assert inside(result.model, "y0").same_numbers(inside(result.model, "x"))
    constant = next(v for v in result.model.graph.values if v.name == "least")
    assert constant.data is not None
    assert constant.data.item() == 0


@pytest.mark.parametrize(
    ("limits", "scale", "point"),
    [
        ((2, 5), 5 / 255, 0),
        ((-5, -2), 5 / 255, 255),
        ((0, 0), 1e-5, 0),
        ((-1e-4, 1e-4), 1e-5, 10),
        ((-1, 4), 5 / 255, 51),
    ],
)
def test_scales_at_the_limits(limits: tuple[float, float], scale: float, point: int) -> None:
    affine = of_limits(limits, TensorType.UINT8)
    assert (affine.scale[0], affine.zero_point[0]) == (pytest.approx(scale), point)


@pytest.mark.parametrize("end", ["float32", "int16"])
def test_ends_may_have_another_type(end: str) -> None:
    result = one(chain(Tanh), input_type=end, output_type=end)
    graph = result.model.graph
    assert [v.dtype.name.lower() for v in (*graph.inputs, *graph.outputs)] == [end, end]
    assert isinstance(graph.ops[0], Quantize)


def layer(**entry: Any) -> dict[str, Any]:
    return {"config": {"layers": [{"name": "y0", "dtype": "int16", **entry}]}}


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"scheme": "int8"}, "ONE has uint8, int16, weights, weights_int16"),
        ({"granularity": "tensor"}, "ONE has channel and layer"),
        ({"scheme": "int16", "granularity": "layer"}, "granularity layer is for uint8 only"),
        ({"input_type": "int8"}, "float32, uint8, int16 are possible"),
        ({"ranges": "mse"}, "ranges is 'mse': ONE's numbers have record_percentile"),
        ({"ranges": "record_percentile:30"}, "record_percentile"),
        ({"rounding": "nearest"}, "rounding does not go with ONE's numbers"),
        (layer(granularity="layer"), "layer 'y0': granularity layer is for uint8"),
        (layer(dtype="int4"), "dtype is 'int4': uint8 and int16"),
        (layer(name="y00"), "no operator's result is called 'y00', did you mean 'y0'"),
        (layer(names=["y0"]), "one of name and names"),
        (layer(bits=3), "bits is not understood"),
        (layer(alternate={"a": ["y0"]}), "both .* and its alternate"),
        ({"config": {"default_quantization_dtype": "int8"}}, "scheme is 'int8': ONE has"),
        ({"config": []}, "an object is needed"),
    ],
)
def test_what_one_does_not_have_is_refused(choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        one(chain(Tanh), **choices)


def test_other_percentiles_give_other_scales() -> None:
    scales = [
        float(inside(one(chain(Tanh), ranges=rule).model, "x").scale[0])
        for rule in ("record_percentile:99", "record_percentile:60")
    ]
    assert scales[1] < scales[0]


def test_networks_that_one_does_not_quantize_are_refused() -> None:
    with pytest.raises(QuantizeError, match="quantized already: tensor 'x' is UINT8"):
        one(one(chain(Tanh)).model)
    model = network([8, 6, 4])
    weights = model.graph.ops[0].operands[1]
    assert weights is not None
    weights.set_data(np.full(weights.dims, np.nan, np.float32))
    for scheme in ("uint8", "weights"):
        with pytest.raises(QuantizeError, match="holds NaN or infinity"):
            one(model, scheme=scheme)
    with pytest.raises(QuantizeError, match="no range is given"):
        luciole.quantize(chain(Tanh), compatible="one")


def test_contents_of_an_input_leave_the_file() -> None:
    model = chain(Tanh)
    model.graph.inputs[0].buffer = Buffer(np.zeros(32, np.uint8))
    assert from_bytes(to_bytes(one(model).model)).graph.inputs[0].dtype == TensorType.UINT8


def test_an_alternate_set_of_names_will_do() -> None:
    entry = {"name": "old", "dtype": "int16", "alternate": {"new": ["y0", "y1"]}}
    result = one(chain(Tanh, Tanh), config={"layers": [{**entry, "granularity": "channel"}]})
    assert inside(result.model, "y1").dtype == TensorType.INT16


def test_one_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from luciole.tools.quantize import main

    given_file, data, config = tmp_path / "m.circle", tmp_path / "d.npy", tmp_path / "q.json"
    model = network([8, 6, 4])
    luciole.save(model, given_file)
    np.save(data, random(5, 8, 8))
    name = model.graph.ops[0].name
    entry = {"name": name, "dtype": "int16", "granularity": "channel"}
    config.write_text(json.dumps({"default_quantization_dtype": "uint8", "layers": [entry]}))
    written = tmp_path / "q.circle"
    words = [str(given_file), "-o", str(written), "--data", str(data)]
    assert main([*words, "--scheme", "uint8", "--compatible", "one"]) == 0
    assert inside(luciole.load(written), name).dtype == TensorType.UINT8
    assert main([*words, "--config", str(config)]) == 0
    assert inside(luciole.load(written), name).dtype == TensorType.INT16
    assert main([*words, "--compatible", "one", "--scheme", "uint8", "--rounding", "nearest"]) == 1
    assert "rounding does not go with ONE's numbers" in capsys.readouterr().err


def test_three_steps_give_what_one_does_in_one() -> None:
    model, x = network([8, 6, 4]), random(5, 30, 8)
    for granularity in ("layer", "channel"):
        rounding, recording, making = (
            OneOptions(granularity=granularity, step=step) for step in STEPS
        )
        whole = luciole.quantize(model, x, OneOptions(granularity=granularity), proof=False).model
        rounded = luciole.quantize(model, None, rounding, proof=False).model
        assert {v.dtype for v in rounded.graph.values} == {TensorType.FLOAT32}
        noted = luciole.quantize(rounded, x, recording, proof=False).model
        noted = from_bytes(to_bytes(noted))
        assert noted_range(noted.graph.inputs[0]) == pytest.approx(
            (np.percentile(x.min(1), 1), np.percentile(x.max(1), 99)), rel=1e-6
        )
        steps = luciole.quantize(noted, None, making, proof=False).model
        assert to_bytes(steps) == to_bytes(whole)


def test_steps_are_refused_where_they_make_no_sense() -> None:
    with pytest.raises(QuantizeError, match="no tensor notes its min and max"):
        luciole.quantize(chain(Tanh), None, OneOptions(step="integers"))
    with pytest.raises(QuantizeError, match="step is 'all': ONE has weights, ranges, integers"):
        OneOptions(step="all")
    with pytest.raises(QuantizeError, match="scheme weights is one step: leave step out"):
        OneOptions(scheme="weights", step="weights")
    with pytest.raises(QuantizeError, match="ranges are those of data: give some"):
        luciole.quantize(chain(Tanh), None, OneOptions(step="ranges"))
