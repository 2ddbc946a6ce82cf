"""``circle-dump``'s views: what circle-inspect, circle-operator and circle-tensordump answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

import luciole
from luciole.ir import Graph, Model, TensorType, Value
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.conv_2d import Conv2D
from luciole.schema.tables import QuantizationParameters
from luciole.tools import dump
from luciole.tools.common import console
from tests.networks import value_named
from tests.support import data_path
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def net(folder: Path) -> Path:
    """A model with a constant kernel, a computed one, 4 bit weights and a long name."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("image", (None, 4, 4, 1))
    kernel = graph.add_constant("a/kernel", np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1))
    kernel.quantization = QuantizationParameters(
        min=np.array([-1, -2], np.float32),
        max=np.array([1, 2], np.float32),
        scale=np.array([0.5, 0.25], np.float32),
        zero_point=np.array([0, 3]),
    )
    small = graph.add_constant("a_kernel", np.arange(8).reshape(2, 2, 2, 1) - 4, TensorType.INT4)
    wide = graph.append(Cast(small, in_data_type=TensorType.INT4), "computed")
    first = graph.append(Conv2D(x, kernel, stride_w=1, stride_h=1), "features/" + "long/" * 30)
    first.version = 3
    graph.append(Conv2D(x, wide.output, stride_w=1, stride_h=1), "other")
    graph.outputs = [op.output for op in graph.ops[1:]]
    model.signatures.append(
        luciole.ir.Signature("serve", graph, [("in", x)], [("out", first.output)])
    )
    luciole.save(model, "net.circle")
    return folder


def lines(capsys: Capture, *argv: str) -> list[str]:
    outcome = call(capsys, "net.circle", *argv, main=dump.main)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.splitlines()


def test_what_circle_inspect_says(capsys: Capture, net: Path) -> None:
    assert lines(capsys, "--operators") == ["CAST", "CONV_2D", "CONV_2D"]
    assert lines(capsys, "--conv2d_weight") == ["CONV_2D,CONST", "CONV_2D,CAST"]
    assert lines(capsys, "--op_version") == ["CAST,1", "CONV_2D,3"]
    assert lines(capsys, "--constants") == ["a/kernel", "a_kernel"]
    types = lines(capsys, "--tensor_dtype")
    assert types[:4] == ["image FLOAT32", "a/kernel FLOAT32", "a_kernel INT4", "computed FLOAT32"]
    assert lines(capsys, "--tensor_shape")[:2] == ["image [-1,4,4,1]", "a/kernel [2,2,2,1]"]
    content = json.loads("".join(lines(capsys, "--tensor-shape", "--json")))
    assert content[0] == {"name": "image", "shape": [-1, 4, 4, 1]}


def test_tensors(capsys: Capture, net: Path) -> None:
    found = [re.split(r"  +", line) for line in lines(capsys, "--tensors")]
    assert found[0] == ["tensor", "type", "shape", "bytes", "quantization", "name"]
    assert found[1] == ["T(0:0)", "FLOAT32", "[?,4,4,1]", "input", "image"]
    assert found[2][2:] == ["[2,2,2,1]", "32 B", "2 scales, axis 0", "a/kernel"]
    assert found[3][1:4] == ["INT4", "[2,2,2,1]", "4 B"]
    assert found[5][-1] == "features/" + "long/" * 30, "whole: a script reads it"


def test_scales_are_shown_as_a_formula(capsys: Capture, net: Path) -> None:
    model = luciole.load("net.circle")
    value = value_named(model, "image")
    for zero, text in ((0, "0.5 q"), (3, "0.5 (q - 3)"), (-128, "0.5 (q + 128)")):
        value.quantization = QuantizationParameters(
            scale=np.array([0.5], np.float32), zero_point=np.array([zero])
        )
        luciole.save(model, "net.circle")
        assert re.split(r"  +", lines(capsys, "--tensors")[1])[4] == text


def test_signatures(capsys: Capture, net: Path) -> None:
    assert lines(capsys, "--signatures")[:2] == ["serve", "  input   in: float32[?,4,4,1] 'image'"]
    assert call(capsys, "dump", "model.circle", "--signatures").out.splitlines()[0] != ""


@pytest.mark.parametrize("view", [v for v in dump.VIEWS if v != "summary"])
def test_every_view_has_json(capsys: Capture, net: Path, view: str) -> None:
    content = json.loads("\n".join(lines(capsys, f"--{view}", "--json")))
    count = {"op-version": 2, "conv2d-weight": 2, "constants": 2, "signatures": 1, "operators": 3}
    assert len(content) == count.get(view, 6)
    if view == "signatures":
        (signature,) = content
        assert signature["inputs"] == [
            {"name": "in", "tensor": "image", "dtype": "FLOAT32", "shape": [None, 4, 4, 1]}
        ]


def test_summary(capsys: Capture, net: Path) -> None:
    text = lines(capsys, "--summary")
    size = Path("net.circle").stat().st_size
    assert text[1] == f"size        {size / 1000:.1f} KB, constants 36 B (FLOAT32 32 B, INT4 4 B)"
    assert text[2:4] == ["parameters  16", "MACs        256"]
    found = json.loads("\n".join(lines(capsys, "--summary", "--json")))
    assert (found["macs"], found["parameters"], found["operators"]) == (256, 16, 3)
    assert found["file_bytes"] == size
    assert found["kinds"][0] == {"kind": "CONV_2D", "count": 2, "macs": 256, "bytes": 32}
    assert [(e["weight_bits"], e["input_bits"]) for e in found["layers"]][-1] == (32, 32)


def test_summary_of_a_quantized_network_has_its_bits(capsys: Capture, folder: Path) -> None:
    found = call(capsys, "dump", data_path("models/resnet8_int8.tflite"), "--summary", "--json")
    content = json.loads(found.out)
    assert {(e["weight_bits"], e["input_bits"]) for e in content["layers"]} == {(8, 8)}
    assert sum(content["bytes_by_type"].values()) == content["constant_bytes"]


@pytest.mark.parametrize("width", [70, 80, 120])
def test_tables_fit_the_terminal(
    capsys: Capture, net: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(console, "columns", lambda: width)
    text = lines(capsys, "--summary")
    assert max(map(len, text[text.index("") :])) <= width
    assert any("result" in line for line in text) == (width >= 100)


def test_a_tensor_is_printed(capsys: Capture, net: Path) -> None:
    text = lines(capsys, "--tensor", "a_kernel")
    assert text[0] == "a_kernel: INT4 [2,2,2,1]"
    assert text[1] == "[[[[-4]"
    text = lines(capsys, "--tensor", "T(0:1)")
    assert text[0] == "a/kernel: FLOAT32 [2,2,2,1]"
    assert text[3:5] == ["scale: [0.5  0.25]", "zero_point: [0 3]"]
    assert lines(capsys, "--tensor", "image") == ["image: FLOAT32 [?,4,4,1]"]
    found = json.loads("\n".join(lines(capsys, "--tensor", "0:1", "--json")))
    assert found["values"] == np.arange(8).reshape(2, 2, 2, 1).tolist()
    assert found["scale"] == [0.5, 0.25]


def test_a_tensors_values_are_written(capsys: Capture, net: Path) -> None:
    lines(capsys, "--tensor", "a/kernel", "-o", "k.npy")
    values = np.load("k.npy")
    np.testing.assert_array_equal(values, np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1))
    lines(capsys, "--tensor", "a/kernel", "-o", "k.h5")
    with h5py.File("k.h5") as file:
        assert list(file) == ["a_kernel"]
        np.testing.assert_array_equal(file["a_kernel/weights"], values)


def test_every_tensor_is_written_as_circle_tensordump_does(capsys: Capture, net: Path) -> None:
    assert lines(capsys, "--tensors_to_hdf5", "all.h5") == ["all.h5: 6 tensors"]
    with h5py.File("all.h5") as file:
        assert {"image", "a_kernel", "a_kernel_1", "computed", "other"} < set(file)
        assert list(file["image"]) == []
        group = file["a_kernel"]
        assert set(group) == {
            *("weights", "min", "max", "scale", "zero_point", "quantized_dimension")
        }
        assert group["scale"][:].tolist() == [0.5, 0.25]
        assert group["zero_point"].dtype == np.int64
        assert group["quantized_dimension"][()] == 0
        assert file["a_kernel_1/weights"][:].ravel().tolist() == list(range(-4, 4))


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--tensor", "nothing"], 1, "no tensor is called 'nothing': luciole dump --tensors lists"),
        (["--tensor", "T(0:99)"], 1, "no tensor is called 'T(0:99)'"),
        (
            ["--tensor", "image", "-o", "x.npy"],
            1,
            "'image' has no contents in the file: the",
        ),
        (["--tensor", "other", "-o", "x.h5"], 1, "'other' has no contents in the file: it is comp"),
        (["--tensor", "a/kernel", "-o", "x.txt"], 2, "values are written as .npy or .h5, not .txt"),
        (["--tensor", "a/kernel", "-o", "none/x.npy"], 1, "cannot write none/x.npy"),
        (["--tensor", "a/kernel", "-o", "none/x.h5"], 1, "cannot write none/x.h5"),
        (["-o", "x.npy"], 2, "-o goes with --tensor: its values are written"),
        (["--operators", "--tensors"], 2, "not allowed with argument"),
    ],
)
def test_dump_refuses_what_cannot_be_shown(
    capsys: Capture, net: Path, argv: list[str], code: int, message: str
) -> None:
    before = left_behind(net)
    text = call(capsys, "net.circle", *argv, main=dump.main).error(code)
    assert message in text
    assert left_behind(net) == before


def test_dump_refuses_a_name_that_two_tensors_have(capsys: Capture, net: Path) -> None:
    model = luciole.load("net.circle")
    model.graph.add_value(Value("a/kernel", TensorType.FLOAT32, (1,)))
    luciole.save(model, "net.circle")
    text = call(capsys, "net.circle", "--tensor", "a/kernel", main=dump.main).error(1)
    assert text == "2 tensors are called 'a/kernel': say which by its place, as T(0:3)"
