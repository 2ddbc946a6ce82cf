"""ONNX's If, whose condition is computed when the network runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, LucioleError
from tests.support import litert

onnx = pytest.importorskip("onnx")
MATRIX = np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)
W = np.array([1, 2, 3, 4], np.float32)


def graph(name: str, nodes: list[Any], output: str, **constants: Array) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(array, n) for n, array in constants.items()]
    inputs = []
    if name == "main":
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])]
    return helper.make_graph(nodes, name, inputs, [result], tensors)


def node(kind: str, *names: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, list(names[:-1]), [names[-1]], **attributes)


def branching(then: Any, otherwise: Any) -> Any:
    """A network that takes a branch by the sign of its input's sum."""
    nodes = [
        node("Neg", "x", "a"),
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum", "zero", "is_more"),
        node("If", "is_more", "chosen", then_branch=then, else_branch=otherwise),
        node("Mul", "chosen", "w", "y"),
    ]
    main = graph("main", nodes, "y", w=W, zero=np.array(0, np.float32))
    opset = onnx.helper.make_opsetid("", 17)
    return onnx.helper.make_model(main, opset_imports=[opset], ir_version=8)


CASES = {
    "operators": (
        graph("t", [node("MatMul", "a", "m1", "p"), node("Relu", "p", "r")], "r", m1=MATRIX),
        graph("e", [node("Add", "a", "w", "s")], "s"),
    ),
    "nothing": (
        graph("t", [node("Identity", "x", "i")], "i"),
        graph("e", [node("Sub", "x", "w", "s")], "s"),
    ),
    "in each other": (
        graph(
            "t",
            [
                node(
                    *("If", "is_more", "i"),
                    then_branch=graph("tt", [node("Exp", "x", "z")], "z"),
                    else_branch=graph("te", [node("Abs", "x", "z")], "z"),
                )
            ],
            "i",
        ),
        graph("e", [node("Identity", "w2", "z")], "z", w2=np.ones((3, 4), np.float32)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_branch_is_chosen_when_the_network_runs(name: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    onnx.save(branching(*CASES[name]), tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    model = luciole.load(tmp_path / "m.onnx")
    assert [op.kind for op in model.graph.ops].count("IF") == 1
    interpreter = luciole.Interpreter(model)
    written = to_bytes(model, "tflite")
    for sign in (1, -1, 1):
        x = sign * np.random.default_rng(5).random((3, 4)).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        np.testing.assert_allclose(interpreter.run(x)["y"], expected, rtol=1e-5)
        np.testing.assert_allclose(litert(written, [x])[0], expected, rtol=1e-5)


def of_extents(nodes: list[Any], shape: list[Any], **constants: Array) -> Any:
    """A network of an input with open extents and the truth ``c``."""
    from onnx import TensorProto, helper

    main = graph("main", nodes, nodes[-1].output[0], **constants)
    main.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    main.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    opset = helper.make_opsetid("", 17)
    return helper.make_model(main, opset_imports=[opset], ir_version=8)


def loaded(model: Any, path: Path) -> tuple[Any, luciole.Interpreter]:
    """Load a model in both runtimes."""
    runtime = pytest.importorskip("onnxruntime")
    onnx.save(model, path)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    return runtime.InferenceSession(path, options), luciole.Interpreter(luciole.load(path))


@pytest.mark.parametrize("outside", [True, False])
def test_an_axis_that_is_dropped_if_it_has_one_element_refuses_others(
    outside: bool, tmp_path: Path
) -> None:
    """PyTorch's squeeze(axis) of an open extent."""
    axes = np.array([1], np.int64)
    inside = [
        onnx.helper.make_node("Constant", [], ["ax"], value=onnx.numpy_helper.from_array(axes))
    ]
    then = graph("t", [*([] if outside else inside), node("Squeeze", "x", "ax", "s")], "s")
    nodes = [
        node("Shape", "x", "e"),
        node("Gather", "e", "one", "n"),
        node("Equal", "n", "one", "is_one"),
        node(
            "If",
            "is_one",
            "d",
            then_branch=then,
            else_branch=graph("e", CASES["nothing"][0].node, "i"),
        ),
        node("Mul", "d", "w", "y"),
    ]
    constants: dict[str, Array] = {"w": W, "one": np.array(1, np.int64)}
    constants |= {"ax": axes} if outside else {}
    session, interpreter = loaded(
        of_extents(nodes, ["n", "c", 4], **constants), tmp_path / "m.onnx"
    )
    for count in (2, 3):
        x = np.random.default_rng(5).random((count, 1, 4)).astype(np.float32)
        feeds = {"x": x, "c": np.array(True)}
        (expected,) = session.run(None, feeds)
        np.testing.assert_array_equal(interpreter.run(feeds)["y"], expected)
    with pytest.raises(LucioleError, match="only 1 can be left out"):
        interpreter.run({"x": np.ones((2, 5, 4), np.float32), "c": np.array(True)})


def test_an_axis_that_something_else_drops_is_not_squeezed(tmp_path: Path) -> None:
    """The truth is an input: of one element, too, the axis stays where it is false."""
    axes = np.array([1], np.int64)
    then = graph("t", [node("Squeeze", "x", "ax", "s")], "s")
    keep = graph("e", CASES["nothing"][0].node, "i")
    nodes = [node("If", "c", "y", then_branch=then, else_branch=keep)]
    session, interpreter = loaded(of_extents(nodes, ["n", "k", 4], ax=axes), tmp_path / "m.onnx")
    for choice in (True, False):
        feeds = {"x": np.ones((2, 1, 4), np.float32), "c": np.array(choice)}
        (expected,) = session.run(None, feeds)
        np.testing.assert_array_equal(interpreter.run(feeds)["y"], expected)


def test_a_branch_that_does_not_take_the_extents_is_refused_when_it_is_chosen(
    tmp_path: Path,
) -> None:
    then = graph("t", [node("Add", "x", "w", "s")], "s")
    otherwise = graph("e", [node("Add", "x", "v", "s")], "s")
    nodes = [node("If", "c", "d", then_branch=then, else_branch=otherwise), node("Neg", "d", "y")]
    network = of_extents(nodes, ["n"], w=W, v=np.arange(6, dtype=np.float32))
    session, interpreter = loaded(network, tmp_path / "m.onnx")
    for choice, count in ((True, 4), (False, 6), (True, 4)):
        feeds = {"x": np.ones(count, np.float32), "c": np.array(choice)}
        (expected,) = session.run(None, feeds)
        np.testing.assert_array_equal(interpreter.run(feeds)["y"], expected)
    with pytest.raises(LucioleError, match="4"):
        interpreter.run({"x": np.ones(4, np.float32), "c": np.array(False)})
