"""ONNX's If, whose condition is computed when the network runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array
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
