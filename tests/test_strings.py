"""String tensors: constants are read, printed and written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Buffer, Graph, GraphError, LucioleError, Model, TensorType, Value
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.strings import decode, encode, strings_of
from luciole.ir.text.plain import describe
from luciole.tools.dump_tensors import as_text, write_tensor

TEXTS = ["", "a", "Glühwürmchen\n", "\udcff\udcfe"]


def encoded(*texts: str) -> Array:
    parts = [text.encode("utf-8", "surrogateescape") for text in texts]
    first = 4 * (len(parts) + 2)
    ends = first + np.cumsum([0, *map(len, parts)])
    head = np.array([len(parts), *ends], "<i4").tobytes()
    return np.frombuffer(head + b"".join(parts), np.uint8)


def model_of(raw: Array, *shape: int) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    texts = graph.add_value(Value("texts", TensorType.STRING, shape, Buffer(raw)))
    graph.append(Abs(graph.add_input("x", (1,))), "y")
    graph.outputs = [graph.ops[0].output, texts]
    return model


def test_constants_are_those_of_litert() -> None:
    from ai_edge_litert.interpreter import Interpreter

    content = to_bytes(model_of(encoded(*TEXTS), 2, 2), "tflite")
    value = from_bytes(content).graph.outputs[1]
    found = strings_of(value)
    assert found is not None
    theirs = Interpreter(model_content=content)
    theirs.allocate_tensors()
    wanted = theirs.get_tensor(theirs.get_output_details()[1]["index"])
    ours = [text.encode("utf-8", "surrogateescape") for text in found.reshape(-1)]
    assert found.shape == wanted.shape
    assert ours == wanted.reshape(-1).tolist()


def test_texts_are_printed() -> None:
    model = model_of(encoded("one", "two"), 2)
    assert as_text(model.graph.outputs[1]) == "texts: STRING [2]\n['one' 'two']"
    tensors = describe(model, "m")["subgraphs"][0]["tensors"]
    assert next(t["values"] for t in tensors if t["name"] == "texts") == ["one", "two"]


def test_write_tensor_refuses_texts(tmp_path: Path) -> None:
    value = model_of(encoded("one"), 1).graph.outputs[1]
    with pytest.raises(LucioleError, match=r"tensor 'texts' holds texts: no \.npy is written"):
        write_tensor(value, str(tmp_path / "x.npy"))


@pytest.mark.parametrize(
    "numbers",
    [[1], [-1, 8], [2, 16, 17], [1, 12, 99], [1, 13, 12], [1, 0, 12], [2**30, 1, 1]],
    ids=str,
)
def test_damaged_buffers_hold_no_texts(numbers: list[int]) -> None:
    assert decode(np.array(numbers, "<i4").view(np.uint8)) is None


def test_texts_that_do_not_fit_the_shape_are_not_shown() -> None:
    model = model_of(encoded("one"), 2)
    with pytest.raises(GraphError, match=r"\[2\] of STRING takes 2 texts, its buffer holds 1"):
        strings_of(model.graph.outputs[1])
    tensors = describe(model, "m")["subgraphs"][0]["tensors"]
    assert next(t["values"] for t in tensors if t["name"] == "texts") is None


def test_buffers_are_written_as_they_are_read() -> None:
    raw = encoded(*TEXTS)
    texts = decode(raw)
    assert texts is not None
    np.testing.assert_array_equal(encode(texts), raw)
    assert decode(np.zeros(0, np.uint8)) == []
