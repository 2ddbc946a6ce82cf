"""Other tools' parameters in a model: it computes what the network that they are of computes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import LucioleError, Model
from luciole.ir.quantization import affine_of
from tests.support import litert
from tests.surgery.networks import pixels, residual
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]
Parameters = dict[str, dict[str, Any]]


def integers() -> Model:
    """The network in int8, inputs and outputs too."""
    result = luciole.quantize(
        residual(),
        pixels(20),
        scheme="int8",
        rescale="none",
        input_type="int8",
        output_type="int8",
        proof=False,
    )
    return result.model


def parameters_of(model: Model) -> Parameters:
    """What q-implant is given: for each tensor how its integers stand for numbers."""
    parameters: Parameters = {}
    for value in model.graph.values:
        affine = affine_of(value)
        if affine is None:
            continue
        entry = {"dtype": affine.dtype.name.lower(), "quantized_dimension": affine.axis}
        name = value.name.removesuffix("_1") if value.is_constant else value.name
        parameters[name] = {**entry, "scale": affine.scale, "zerop": affine.zero_point}
        if value.is_constant:
            parameters[name]["value"] = value.contents
    return parameters


def written(folder: Path, parameters: Parameters) -> Path:
    """The folder of q-implant."""
    content: Parameters = {}
    for name, entry in parameters.items():
        content[name] = dict(entry)
        for key in ("scale", "zerop", "value"):
            if key in entry:
                content[name][key] = f"{len(list(folder.iterdir()))}.npy"
                np.save(folder / content[name][key], entry[key])
    (folder / "qparam.json").write_text(json.dumps(content))
    return folder


def check_same(implanted: Model, model: Model) -> None:
    """Two networks give the same integers, here and in LiteRT, by operators of one version."""
    versions = [[(op.kind, op.version) for op in one.graph.ops] for one in (implanted, model)]
    assert versions[0] == versions[1]
    codes = np.random.default_rng(4).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    (expected,) = luciole.Interpreter(model).run(codes).values()
    (computed,) = luciole.Interpreter(implanted).run(codes).values()
    assert computed.dtype == np.int8
    np.testing.assert_array_equal(computed, expected)
    np.testing.assert_array_equal(litert(to_bytes(implanted, "tflite"), [codes])[0], expected)


def test_a_folder_makes_a_float_network_one_of_integers(tmp_path: Path) -> None:
    model = integers()
    folder = written(tmp_path, parameters_of(model))
    check_same(luciole.implant(residual(), folder), model)
    check_same(luciole.implant(residual(), folder / "qparam.json"), model)


def test_what_is_left_out_follows_from_the_rest() -> None:
    model = integers()
    parameters = parameters_of(model)
    for name in ("pool", "rows", "conv/bias", "inner/bias", "logits/bias"):
        del parameters[name]
    for name in ("conv/filter", "inner/filter"):
        del parameters[name]["value"]
    implanted = luciole.implant(residual(), parameters)
    for name in ("pool", "rows"):
        value = next(v for v in implanted.graph.values if v.name == name)
        assert affine_of(value) is not None
    codes = np.random.default_rng(4).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    (expected,) = luciole.Interpreter(model).run(codes).values()
    (computed,) = luciole.Interpreter(implanted).run(codes).values()
    assert np.abs(computed.astype(int) - expected).max() <= 3  # weights were rounded to nearest


def test_integers_get_other_scales() -> None:
    model = integers()
    table = parameters_of(model)["logits"]
    implanted = luciole.implant(model, {"logits": {**table, "scale": table["scale"] * 2}})
    value = implanted.graph.outputs[0]
    np.testing.assert_allclose(affine_of(value).scale, table["scale"] * 2)  # type: ignore[union-attr]  # it has


def test_ranges_go_into_a_file_and_come_out_again(tmp_path: Path) -> None:
    result = luciole.quantize(residual(), pixels(20), scheme="int8", rescale="none", proof=False)
    assert result.ranges is not None
    path = tmp_path / "net.circle"
    luciole.save(luciole.implant(residual(), ranges=result.ranges), path)
    table = next(v.quantization for v in luciole.load(path).graph.values if v.name == "sum")
    assert table is not None
    bounds = result.ranges.tensors["sum"]
    assert [float(table.min[0]), float(table.max[0])] == pytest.approx([bounds.low, bounds.high])  # type: ignore[index]  # both are there
    again = luciole.quantize(
        residual(), scheme="int8", ranges_from=path, rounding="nearest", proof=False
    )
    same = luciole.quantize(
        residual(), scheme="int8", ranges_from=result.ranges, rounding="nearest", proof=False
    )
    assert to_bytes(again.model) == to_bytes(same.model)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"logit": {}}, "tensor 'logit': dtype is missing"),
        ({"conv": {"dtype": "int9"}}, "tensor 'conv': dtype is 'int9', there is "),
        ({"conv": {"zero": 1}}, "tensor 'conv': zero is not understood"),
        ({"conv": {"zerop": np.zeros(2, np.int64)}}, "tensor 'conv': 1 scales, 2 zero points"),
        ({"conv": {"scale": np.zeros(1, np.float32)}}, "they must be positive and finite"),
        ({"conv": {"value": np.zeros(1, np.int8)}}, "'conv' is no constant: it takes no values"),
        ({"conv/filter": {"value": np.zeros(3, np.int8)}}, "takes values of int8 [4,3,3,3], found"),
        ({"conv": {"zerop": np.full(1, 300)}}, "takes zero points from -128 to 127, as INT8"),
        ({"conv/filter": {"dtype": "int4"}}, "takes values from -8 to 7, as INT4 holds them"),
        ({"conv/filter": {"quantized_dimension": 4}}, "has its scales along axis 4"),
        ({"rows": {"scale": np.ones(1, np.float32)}}, "must have one scale and zero point"),
        (
            {"sum": {"scale": np.ones(1, np.float32)}, "rows": {"scale": np.ones(1, np.float32)}},
            "FullyConnected 'logits': the bias has scale ",
        ),
        ({"conv": {"dtype": "uint8"}}, "does not make a network of integers: "),
    ],
)
def test_implant_refuses_what_does_not_fit(change: Mapping[str, Any], sentence: str) -> None:
    parameters = parameters_of(integers())
    for name, entry in change.items():
        parameters[name] = {**parameters.get(name, {}), **entry}
    with pytest.raises(LucioleError) as raised:
        luciole.implant(residual(), parameters)
    assert sentence in str(raised.value)


def test_implant_refuses_half_a_network_and_unknown_tensors() -> None:
    parameters = parameters_of(integers())
    half = {name: parameters[name] for name in ("image", "conv/filter", "conv/bias")}
    with pytest.raises(LucioleError, match=r"does not make a network of integers: .*'conv'"):
        luciole.implant(residual(), half)
    with pytest.raises(LucioleError, match="no tensor is called 'convolution'"):
        luciole.implant(residual(), {"convolution": parameters["conv"]})
    with pytest.raises(LucioleError, match="nothing is put in"):
        luciole.implant(residual())


def test_the_program_reads_a_folder_and_refuses_in_one_line(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    luciole.save(residual(), "net.tflite")
    Path("q").mkdir()
    written(Path("q"), parameters_of(integers()))
    argv = ("implant", "net.tflite", "-o", "out.tflite")
    assert call(capsys, *argv, "--parameters", "q").out.endswith("gives logits: INT8 [1,5]\n")
    assert call(capsys, "verify", "out.tflite").code == 0
    assert "say what is put in" in call(capsys, *argv).error(2)
    Path("q/0.npy").write_bytes(b"no")
    assert "0.npy: not a .npy file" in call(capsys, *argv, "--parameters", "q").error(1)
    Path("q/qparam.json").write_text('{"conv": {"scale": "../x.npy"}}')
    assert "is a .npy file beside it" in call(capsys, *argv, "--parameters", "q").error(1)
    assert "no such file" in call(capsys, *argv, "--parameters", "r").error(1).lower()
