"""Errors: one line that does nothing to a terminal, whatever texts of files it quotes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers.onnx.model import from_bytes
from luciole.ir import Graph, LucioleError, Model, UnsupportedError
from luciole.ir.errors import FormatError
from luciole.ir.ops.activations import Relu
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.calibration.saved import Ranges

HOSTILE = "\x1b[2J\nname\u202e\udcff"
ESCAPED = r"\x1b[2J\nname\u202e\udcff"


def test_errors_escape_what_does_not_print() -> None:
    error = FormatError(f"the file {HOSTILE} is damaged")
    assert str(error) == f"the file {ESCAPED} is damaged"
    assert str(FormatError(str(error))) == str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    many = UnsupportedError(f"not done: {HOSTILE}", [HOSTILE, "plain \u00e9"])
    assert (str(many), many.missing) == (f"not done: {ESCAPED}", [ESCAPED, "plain \u00e9"])
    assert UnsupportedError(HOSTILE).missing == [ESCAPED]


def of_an_operator() -> None:
    onnx = pytest.importorskip("onnx")
    made = onnx.helper.make_node("KIND", ["nope"], ["y"])
    made.op_type = HOSTILE.replace("\udcff", "")
    output = onnx.helper.make_empty_tensor_value_info("y")
    graph = onnx.helper.make_graph([made], "g", [], [output])
    from_bytes(onnx.helper.make_model(graph).SerializeToString())


def of_a_direction() -> None:
    onnx = pytest.importorskip("onnx")
    text = HOSTILE.replace("\udcff", "")
    made = onnx.helper.make_node("GRU", ["x", "w", "w"], ["y"], hidden_size=1, direction=text)
    output = onnx.helper.make_empty_tensor_value_info("y")
    given = [onnx.helper.make_tensor_value_info("x", 1, [2, 1, 1])]
    weights = onnx.numpy_helper.from_array(np.zeros((1, 3, 1), np.float32), "w")
    graph = onnx.helper.make_graph([made], "g", given, [output], [weights])
    from_bytes(onnx.helper.make_model(graph).SerializeToString())


REFUSALS: dict[str, Callable[[], Any]] = {
    "an operator of ONNX": of_an_operator,
    "an attribute of ONNX": of_a_direction,
    "a config's key": lambda: Config.parse({HOSTILE: 1}, Choice()),
    "a layer's key": lambda: Config.parse({"layers": [{"name": "a", HOSTILE: 1}]}, Choice()),
    "saved ranges' key": lambda: Ranges.parse({"tensors": {}, HOSTILE: 1}),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_whoever_refuses_quotes_texts_of_files_escaped(what: str) -> None:
    with pytest.raises(LucioleError) as caught:
        REFUSALS[what]()
    assert r"\x1b[2J\nname\u202e" in str(caught.value)
    assert str(caught.value).isprintable()


def test_export_writes_names_that_are_no_utf8_escaped() -> None:
    onnx = pytest.importorskip("onnx")
    model = Model([], "made by \udcff")
    graph = model.add_graph(Graph("main\udc80"))
    graph.append(Relu(graph.add_input("x\udcff", (2,))), "y\udcff")
    graph.outputs = [graph.values[-1]]
    made = onnx.load_from_string(to_bytes(model, "onnx"))
    names = [made.graph.name, made.graph.input[0].name, made.graph.output[0].name, made.doc_string]
    assert names == [r"main\x80", r"x\xff", r"y\xff", r"made by \xff"]
    again = luciole.Interpreter(from_bytes(made.SerializeToString()).model)
    x = np.array([-1, 2], np.float32)
    np.testing.assert_array_equal(again.run({r"x\xff": x})[r"y\xff"], [0, 2])
