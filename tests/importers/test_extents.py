"""Extents and inputs that callers settle while a file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Graph, LucioleError, Model, TensorType, UnsupportedError
from luciole.ir.errors import FormatError, ShapeError
from luciole.ir.ops.elementwise_binary import Add
from luciole.tools.main import main
from tests.support import data_path

onnx = pytest.importorskip("onnx")

OPEN = ["n", 3, "height", "width"]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A file that turns an image up, by an operator that needs its extents."""
    return write(tmp_path / "images.onnx", {"x": OPEN}, "up")


def write(path: Path, inputs: dict[str, list[Any]], kind: str) -> Path:
    """Write a network: ``up`` doubles an image, ``times`` multiplies two inputs."""
    from onnx import TensorProto, helper

    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 2, 2, 2], np.ones(24))
    nodes = {
        "up": helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2]),
        "times": helper.make_node("Mul", list(inputs), ["y"]),
    }
    types = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [weights] if kind == "up" else []
    graph = helper.make_graph([nodes[kind]], "g", types, [result], constants)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    "settled",
    [
        {"shapes": {"x": (2, 3, 6, 4)}},
        {"batch": 2, "dims": {"height": 6, "width": 4}},
        {"dims": {"n": 2, "height": 6, "width": 4}},
        {"batch": 2, "shapes": {"x": (None, 3, 6, None)}, "dims": {"width": 4}},
    ],
)
def test_extents_are_known_before_nodes_are_imported(images: Path, settled: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    graph = luciole.load(images, **settled).graph
    assert [v.shape for v in (*graph.inputs, *graph.outputs)] == [(2, 3, 6, 4), (2, 2, 12, 8)]
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 4)).astype(np.float32)
    (expected,) = runtime.InferenceSession(images).run(None, {"x": x})
    model = luciole.load(images, **settled)
    np.testing.assert_allclose(luciole.Interpreter(model).run(x)["y"], expected, rtol=1e-5)


def test_what_is_open_and_how_to_close_it_is_said(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx", [node("DepthToSpace", "x", "y", blocksize=2, mode="CRD")], OPEN, {}
    )
    with pytest.raises(UnsupportedError) as refused:
        luciole.load(path)
    text = str(refused.value)
    assert "DepthToSpace (the shape of 'x' is not known)" in text
    assert "Open extents: 'x' [n,3,height,width]; luciole import --batch N, --shape" in text


def test_one_name_is_one_extent_wherever_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", {"a": ["n", "k"], "b": ["n", "k"]}, "times")
    graph = luciole.load(path, shapes={"a": (4, 5)}).graph
    assert [v.shape for v in graph.inputs] == [(4, 5), (4, 5)]
    with pytest.raises(ShapeError, match="the extent 'k' is to be 5 and 6"):
        luciole.load(path, shapes={"a": (4, 5), "b": (4, 6)})


def test_a_question_mark_is_no_name_of_an_extent(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", {"a": ["?", "?"], "b": ["?", "?"]}, "times")
    graph = luciole.load(path, shapes={"a": (4, 5), "b": (4, 5)}).graph
    assert [v.shape for v in graph.inputs] == [(4, 5), (4, 5)]


def test_a_constant_takes_the_place_of_an_input(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", {"a": [2], "b": [1]}, "times")
    model = luciole.load(path, constants={"b": [3]})
    assert [v.name for v in model.graph.inputs] == ["a"]
    assert luciole.Interpreter(model).run(np.array([1, 2], np.float32))["y"].tolist() == [3, 6]


def test_files_of_any_kind_take_shapes_and_constants(tmp_path: Path) -> None:
    model = Model([])
    graph = model.add_graph(Graph("main"))
    a, b = graph.add_input("a", (None, 3)), graph.add_input("b", (3,))
    graph.outputs = [graph.append(Add(a, b), "y").output]
    luciole.save(model, tmp_path / "m.circle")
    read = luciole.load(tmp_path / "m.circle", shapes={"a": (2, 3)}, constants={"b": [1, 2, 3]})
    assert [v.shape for v in (*read.graph.inputs, *read.graph.outputs)] == [(2, 3), (2, 3)]
    result = luciole.Interpreter(read).run(np.zeros((2, 3), np.float32))["y"]
    assert result.tolist() == [[1, 2, 3]] * 2


@pytest.mark.parametrize(
    ("settled", "error", "sentence"),
    [
        ({"dims": {"depth": 3}}, FormatError, "no extent has the name 'depth': there are 'n', 'he"),
        ({"shapes": {"z": (1,)}}, FormatError, "no input has the name 'z': there are 'x'"),
        ({"shapes": {"x": (1, 4, 6, 4)}}, ShapeError, "only what is open can be settled"),
        ({"shapes": {"x": (1, 3)}}, ShapeError, "the input 'x' has the shape [?,3,?,?], which"),
        ({"shapes": {"x": (1, 3, 0, 4)}}, ShapeError, "extent 2 of x is 0: 1 to 2,147,483,647 ar"),
        ({"constants": {"x": "text"}}, FormatError, "FLOAT32 of the input 'x' has no constants he"),
        ({"constants": {"x": [1, 2]}}, ShapeError, "the input 'x' has the shape [?,3,?,?], which"),
    ],
)
def test_what_the_file_does_not_take_is_refused(
    images: Path, settled: Any, error: type[LucioleError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        luciole.load(images, **settled)
    assert sentence in str(refused.value)


def test_names_of_extents_are_onnx_alone() -> None:
    with pytest.raises(FormatError, match="ONNX files name extents"):
        luciole.load(data_path("models/resnet8_fp32.tflite"), dims={"n": 1})


def test_a_command_settles_them(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "m.tflite"
    words = ["import", str(images), "-o", str(output)]
    assert main([*words, "--batch", "1", "--shape", "x=?,3,8,-1", "--dim", "width=6"]) == 0
    assert luciole.load(output).graph.inputs[0].shape == (1, 3, 8, 6)
    output.unlink()
    assert main([*words, "--dim", "depth=6"]) == 1
    assert "no extent has the name 'depth'" in capsys.readouterr().err
    deep = "x=" + "[" * 100_000
    for wrong in (
        ["--shape", "1,3"],
        ["--dim", "n=x"],
        ["--constant", "x=one"],
        ["--constant", deep],
    ):
        with pytest.raises(SystemExit) as ended:
            main([*words, *wrong])
        assert ended.value.code == 2
    assert not output.exists()


def save(path: Path, nodes: list[Any], shape: list[Any], constants: dict[str, Any]) -> Path:
    """Write a network of nodes from ``x`` to ``y``."""
    from onnx import TensorProto, helper, numpy_helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    opset = helper.make_opsetid("", 17)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


def node(kind: str, *names: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, list(names[:-1]), [names[-1]], **attributes)


W = np.random.default_rng(3).standard_normal((4, 3, 3, 2)).astype(np.float32)
TWICE, THRICE = np.array([[1, 1, 2, 2], [1, 1, 2, 3]], np.float32)
LINEAR = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
FLOORS = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "transposed": (
        [node("ConvTranspose", "x", "w", "y", strides=[2, 3], pads=[1, 0, 0, 1])],
        {"w": W},
    ),
    "groups": (
        [node("ConvTranspose", "x", "w", "b", "y", strides=[2, 2], group=2)],
        {"w": W, "b": np.arange(6, dtype=np.float32)},
    ),
    "nearest": (
        [node("Resize", "x", "", "s", "y", **FLOORS)],
        {"s": THRICE},
    ),
    "linear": (
        [node("Resize", "x", "", "s", "y", **LINEAR)],
        {"s": TWICE},
    ),
    "axes": (
        [node("Unsqueeze", "x", "at", "u"), node("Squeeze", "u", "at", "y")],
        {"at": np.array([0, 3])},
    ),
    "own extents": ([node("Reshape", "x", "to", "y")], {"to": np.array([0, 2, 2, 0, -1])}),
    "computed extents": (
        [
            node("Shape", "x", "s"),
            node("Gather", "s", "place", "n"),
            node("Concat", "first", "n", "rest", "to", axis=0),
            node("Reshape", "x", "to", "z"),
            node("Conv", "z", "f", "y"),
        ],
        {
            "place": np.array([2]),
            "first": np.array([0, 4]),
            "rest": np.array([-1]),
            "f": np.ones((2, 4, 1, 1), np.float32),
        },
    ),
    "the last element": ([node("Gather", "x", "at", "y", axis=3)], {"at": np.array([-1, 0])}),
    "below a diagonal": ([node("Trilu", "x", "k", "y", upper=0)], {"k": np.array(1)}),
    "above a diagonal": ([node("Trilu", "x", "k", "y")], {"k": np.array(-2)}),
    "an order of its own": (
        [node("Relu", "b", "y"), node("Neg", "a", "b"), node("Sigmoid", "x", "a")],
        {},
    ),
}


@pytest.mark.parametrize("name", ["transposed", "groups", "nearest", "linear"])
def test_images_of_any_number_are_turned_up(name: str, tmp_path: Path) -> None:
    """The batch alone is open, as exporters leave it."""
    runtime = pytest.importorskip("onnxruntime")
    nodes, constants = CASES[name]
    path = save(tmp_path / "m.onnx", nodes, ["n", 4, 6, 5], constants)
    interpreter, session = luciole.Interpreter(path), runtime.InferenceSession(path)
    batch, *extents = luciole.load(path).graph.outputs[0].shape
    for count in (1, 3):
        x = np.random.default_rng(4).standard_normal((count, 4, 6, 5)).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        assert (batch, *extents) == (None, *expected.shape[1:])
        np.testing.assert_allclose(interpreter.run(x)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_networks_with_open_extents_run_at_any_size(name: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    nodes, constants = CASES[name]
    path = save(tmp_path / "m.onnx", nodes, ["n", 4, "h", "w"], constants)
    interpreter = luciole.Interpreter(path)
    session = runtime.InferenceSession(path)
    for size in ((1, 4, 6, 6), (2, 4, 6, 10), (1, 4, 6, 7)):
        x = np.random.default_rng(4).standard_normal(size).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(interpreter.run(x)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["transposed", "computed extents"])
def test_extents_of_any_file_are_no_longer_computed_once_they_are_settled(
    name: str, tmp_path: Path
) -> None:
    nodes, constants = CASES[name]
    path = save(tmp_path / "m.onnx", nodes, ["n", 4, "h", "w"], constants)
    luciole.save(luciole.load(path), tmp_path / "m.tflite")
    settled = luciole.load(tmp_path / "m.tflite", shapes={"x": (1, 4, 6, 6)}).graph
    assert all(result.dtype == TensorType.FLOAT32 for op in settled.ops for result in op.results)
    assert not any(value.is_constant and not value.users for value in settled.values)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("shape", [["time", "batch", 5], ["time", 2, 5], [6, "batch", 5]])
def test_sequences_of_any_length_and_number_are_a_loop(
    kind: str, shape: list[Any], tmp_path: Path
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    gates = {"LSTM": 4, "GRU": 3}[kind]
    rng = np.random.default_rng(5)
    weights = {
        name: rng.standard_normal((2, gates * 3, n)).astype(np.float32)
        for name, n in (("wx", 5), ("wh", 3))
    }
    nodes = [node(kind, "x", "wx", "wh", "y", direction="bidirectional", hidden_size=3)]
    path = save(tmp_path / "m.onnx", nodes, shape, weights)
    interpreter, session = luciole.Interpreter(path), runtime.InferenceSession(path)
    for time, batch in ((6, 2), (3, 2), (6, 4)):
        size = [
            n if isinstance(n, int) else m for n, m in zip(shape, (time, batch, 5), strict=True)
        ]
        x = rng.standard_normal(size).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        for _ in range(2):  # the state begins at zero in each run
            np.testing.assert_allclose(interpreter.run(x)["y"], expected, rtol=1e-4, atol=1e-5)


def test_a_state_of_computed_extents_begins_a_loop(tmp_path: Path) -> None:
    """torch's exporter expands a number to the extents of a state, by those of the input."""
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(5)
    shapes = {"wx": (1, 9, 5), "wh": (1, 9, 3)}
    constants: dict[str, Any] = {
        n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()
    }
    constants |= {"one": np.array([1]), "three": np.array([3]), "half": np.float32(0.5)}
    nodes = [
        node("Shape", "x", "batch", start=1, end=2),
        node("Concat", "one", "batch", "three", "to", axis=0),
        node("Expand", "half", "to", "h"),
        node("GRU", "x", "wx", "wh", "", "", "h", "y", hidden_size=3),
    ]
    path = save(tmp_path / "m.onnx", nodes, ["time", "batch", 5], constants)
    interpreter, session = luciole.Interpreter(path), runtime.InferenceSession(path)
    for size in ((6, 2, 5), (3, 4, 5)):
        x = rng.standard_normal(size).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(interpreter.run(x)["y"], expected, rtol=1e-4, atol=1e-5)
