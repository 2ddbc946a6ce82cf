"""Parts of models, other ends and other shapes: what comes out computes what the whole did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, LucioleError, Model, ShapeError, TensorType, UnknownOp, Value
from luciole.ir.errors import FormatError
from luciole.ir.verify import verify
from tests.ops.control_flow_support import X, Y, branches, counter, growing
from tests.support import data_path, litert
from tests.surgery.networks import pixels, residual


def tensors(model: Model, inputs: Mapping[str, Array], *names: str) -> dict[str, Array]:
    """Tensors of a single run."""
    values = {v.name: v for v in model.graph.values}
    interpreter = luciole.Interpreter(model, keep_tensors=True)
    arrays = interpreter.computed(inputs, [values[name] for name in names])
    return dict(zip(names, arrays, strict=True))


def names_of(values: Sequence[Value]) -> list[str]:
    return [value.name for value in values]


def check_part(part: Model, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """A part of ``residual`` has these ends, is sound, keeps notes of the whole, and computes what
    the whole does, in LiteRT, too.
    """
    graph = part.graph
    assert (names_of(graph.inputs), names_of(graph.outputs)) == ([*inputs], [*outputs])
    assert verify(part) == []
    assert (part.description, [name for name, _ in part.metadata]) == ("with a branch", ["note"])
    known = tensors(residual(), {"image": pixels()}, *inputs, *outputs)
    fed = {name: known[name] for name in inputs}
    computed = luciole.Interpreter(part).run(fed)
    theirs = litert(to_bytes(part, "tflite"), list(fed.values()))
    for name, other in zip(outputs, theirs, strict=True):
        np.testing.assert_array_equal(computed[name], known[name])
        np.testing.assert_allclose(other, known[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("chosen", "inputs", "outputs"),
    [
        ({"numbers": [1, 2]}, ["conv"], ["pool", "inner"]),
        ({"names": ["in*"], "kinds": ["add"]}, ["pool"], ["sum"]),
        ({"kinds": ["CONV_2D"]}, ["image", "pool"], ["conv", "inner"]),
        ({"start": "pool", "end": "rows"}, ["pool"], ["rows"]),
        ({"start": "inner", "end": "sum"}, ["pool", "inner"], ["sum"]),
        ({"start": "sum"}, ["sum"], ["logits"]),
        ({"end": "T(0:4)"}, ["image"], ["pool"]),
    ],
)
def test_operators_are_taken_out(
    chosen: Mapping[str, Any], inputs: list[str], outputs: list[str]
) -> None:
    part = luciole.extract(residual(), **chosen)
    check_part(part, inputs, outputs)
    assert all(v.users or v.is_output for v in part.graph.values)


def test_signatures_name_the_new_ends() -> None:
    part = luciole.extract(residual(), end="pool")
    (signature,) = part.signatures
    assert [(n, v.name) for n, v in signature.inputs] == [("pixels", "image")]
    assert [(n, v.name) for n, v in signature.outputs] == [("pool", "pool")]
    back = luciole.extract(residual(), start="pool").signatures[0]
    assert [n for n, _ in (*back.inputs, *back.outputs)] == ["pool", "scores"]


def test_graphs_that_operators_call_go_with_them() -> None:
    model = branches()
    part = luciole.extract(model, kinds=["IF"])
    assert len(part.graphs) == 3
    inputs = {"condition": np.array(True), "x": X, "y": Y}
    (computed,) = luciole.Interpreter(part).run(inputs).values()
    np.testing.assert_array_equal(computed, X + Y)


@pytest.mark.parametrize(
    ("ends", "inputs", "outputs"),
    [
        ({"outputs": ["inner", "pool"]}, ["image"], ["inner", "pool"]),
        ({"inputs": ["pool"]}, ["pool"], ["logits"]),
        ({"inputs": ["inner"]}, ["image", "inner"], ["logits"]),
        ({"inputs": ["conv"], "outputs": ["sum", "pool"]}, ["conv"], ["sum", "pool"]),
    ],
)
def test_ends_are_cut(ends: Mapping[str, Any], inputs: list[str], outputs: list[str]) -> None:
    check_part(luciole.cut(residual(), **ends), inputs, outputs)


def test_a_cut_keeps_what_writes_the_variables_that_it_reads() -> None:
    part = luciole.cut(counter(), outputs=["held"])
    interpreter = luciole.Interpreter(part)
    held = [interpreter.run({"x": np.array([2], np.float32)})["held"][0] for _ in range(3)]
    assert held == [5, 7, 9]


def test_parts_compute_what_the_whole_computes_bit_for_bit(tmp_path: Path) -> None:
    model = residual()
    parts = luciole.split(model, ["sum", "conv"])
    assert [[op.name for op in part.graph.ops] for part in parts.models] == [
        ["conv"],
        ["pool", "inner", "sum"],
        ["rows", "logits"],
    ]
    x = pixels(5)
    whole = luciole.run(model, x)["logits"]
    np.testing.assert_array_equal(luciole.run(parts, x)["logits"], whole)
    files = parts.save(tmp_path / "net.conn.json", source="net.circle", extension=".tflite")
    assert [file.name for file in files] == ["net.1.tflite", "net.2.tflite", "net.3.tflite"]
    read = luciole.run(tmp_path / "net.conn.json", {"image": x}, ["conv", "logits"])
    np.testing.assert_array_equal(read["logits"], whole)
    np.testing.assert_array_equal(read["conv"], luciole.run(model, x, "conv")["conv"])


def test_a_branch_crosses_a_split_as_another_tensor() -> None:
    parts = luciole.split(residual(), "inner")
    ends = [(names_of(m.graph.inputs), names_of(m.graph.outputs)) for m in parts.models]
    assert ends == [(["image"], ["pool", "inner"]), (["pool", "inner"], ["logits"])]
    for part, (inputs, outputs) in zip(parts.models, ends, strict=True):
        check_part(part, inputs, outputs)


@pytest.mark.parametrize("name", ["mbnet_fp32", "resnet8_int8"])
def test_a_network_in_three_parts_is_the_network(name: str) -> None:
    model = luciole.load(data_path(f"models/{name}.tflite"))
    images = np.load(data_path("cifar10_subset.npz"))["x_test"][:8]
    at = [f"T(0:{model.graph.values.index(model.graph.ops[n].output)})" for n in (5, 11)]
    parts = luciole.split(model, at)
    whole, joined = luciole.run(model, images), luciole.run(parts, images)
    assert len(parts.models) == 3
    assert whole.keys() == joined.keys()
    for key, array in whole.items():
        np.testing.assert_array_equal(joined[key], array)


def test_other_shapes_reach_everything_behind() -> None:
    model = luciole.resize(residual(), {"pixels": (3, 8, 8, 3)})
    assert [v.shape for v in (*model.graph.inputs, *model.graph.outputs)] == [(3, 8, 8, 3), (3, 5)]
    assert verify(model) == []
    x = pixels(3)
    np.testing.assert_allclose(
        luciole.Interpreter(model).run(x)["logits"],
        np.concatenate([luciole.Interpreter(residual()).run(row[None])["logits"] for row in x]),
        rtol=1e-5,
        atol=1e-5,
    )
    opened = luciole.resize(residual(), {"image": (None, 8, 8, 3)})
    assert opened.graph.outputs[0].shape == (None, 5)


def test_graphs_that_are_called_get_the_shapes_of_their_arguments() -> None:
    model = luciole.resize(branches(), {"x": (4, 1, 3)})
    assert {g.inputs[0].shape for g in model.graphs[1:]} == {(4, 1, 3)}
    assert {g.outputs[0].shape for g in model.graphs[1:]} == {(4, 2, 3)}
    loop = luciole.resize(growing(100.0), {"y": (2, 5)})
    assert loop.graphs[2].inputs[1].shape == (None, 5)
    assert verify(loop) == []


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: luciole.extract(m), "no operator is chosen"),
        (lambda m: luciole.extract(m, numbers=[6]), "there is no operator 6, they are numbered"),
        (lambda m: luciole.extract(m, names=["q*"]), "no operator's result is called like 'q"),
        (lambda m: luciole.extract(m, kinds=["SUB"]), "there is no SUB, the graph has ADD, "),
        (lambda m: luciole.extract(m, start="sum", end="conv"), "'conv' does not depend on it"),
        (lambda m: luciole.extract(m, start="logits"), "no operator reads it"),
        (lambda m: luciole.extract(m, end="image"), "'image' is computed by no operator"),
        (lambda m: luciole.extract(m, end="summ"), "is called 'summ': did you mean 'sum'?"),
        (lambda m: luciole.cut(m, outputs=["image"]), "'image' is no output: no operator"),
        (lambda m: luciole.cut(m, inputs=["conv/bias"]), "no input: it is a constant"),
        (lambda m: luciole.cut(m, outputs=["conv"], inputs=["sum"]), "'sum' is not needed for"),
        (lambda m: luciole.split(m, "logits"), "parts nothing: no operator comes behind"),
        (lambda m: luciole.split(m, ["sum", "sum"]), "it is computed already before"),
        (lambda m: luciole.split(m, "image"), "nothing can be split at tensor 'image'"),
        (lambda m: luciole.resize(m, {"conv": (1,)}), "'conv' is no input: only inputs"),
    ],
)
def test_surgery_refuses_tensors_that_no_cut_goes_through(call: Any, sentence: str) -> None:
    with pytest.raises(LucioleError) as raised:
        call(residual())
    assert sentence in str(raised.value)


@pytest.mark.parametrize("call", [luciole.extract, luciole.split])
def test_surgery_refuses_to_split_a_state(call: Any) -> None:
    chosen = {"end": "held"} if call is luciole.extract else {"at": "held"}
    with pytest.raises(LucioleError) as raised:
        call(counter(), **chosen)
    assert "share a variable or a table, whose state is not split" in str(raised.value)


def test_surgery_refuses_what_is_inside_of_a_called_graph() -> None:
    model = branches()
    inside = model.graphs[1].outputs[0].name
    with pytest.raises(LucioleError, match="is inside of graph 'sum', which an operator calls"):
        luciole.extract(model, end=inside)


def test_resize_refuses_shapes_that_an_operator_does_not_take() -> None:
    with pytest.raises(ShapeError, match=r"^Conv2D 'conv': filter has 3 input channels"):
        luciole.resize(residual(), {"image": (1, 8, 8, 4)})
    with pytest.raises(ShapeError, match=r"^Reshape 'rows': "):
        luciole.resize(residual(), {"image": (1, 9, 10, 3)})
    with pytest.raises(ShapeError, match=r"^Reshape 'rows': it gives \[2,64\] of \[1,8,4,4\], so"):
        luciole.resize(residual(), {"image": (1, 16, 8, 3)})
    with pytest.raises(ShapeError, match=r"^extent 0 of image is 0: 1 to 2,147,483,647 are"):
        luciole.resize(residual(), {"image": (0, 8, 8, 3)})
    with pytest.raises(ShapeError, match=r"^input 'image' cannot get the shape of a single number"):
        luciole.resize(residual(), {"image": ()})
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4))
    y = graph.add_value(Value("y", TensorType.FLOAT32, (1, 4)))
    graph.append(UnknownOp(32, [x], custom_code="Mystery"), results=[y])
    graph.outputs = [y]
    with pytest.raises(ShapeError, match=r"^CUSTOM\(Mystery\) 'y': its rule for shapes is not"):
        luciole.resize(model, {"x": (2, 4)})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", 'an object with "source" is needed'),
        ('{"source": {"inputs": [], "outputs": [1]}, "parts": []}', '"outputs" is a list of names'),
        ('{"source": {"inputs": [], "outputs": []}, "parts": []}', '"parts" is a list of at least'),
        (
            '{"source": {"inputs": [], "outputs": []}, "parts": [{"file": "../a.circle"}]}',
            "is the name of a file beside it",
        ),
    ],
)
def test_parts_refuses_descriptions_that_say_nothing(
    tmp_path: Path, content: str, sentence: str
) -> None:
    path = tmp_path / "net.conn.json"
    path.write_text(content)
    with pytest.raises(FormatError) as raised:
        luciole.Parts.load(path)
    assert sentence in str(raised.value)


def test_parts_refuses_models_that_do_not_follow_each_other() -> None:
    first, second = luciole.split(residual(), "sum").models
    with pytest.raises(LucioleError, match="takes 'sum', which no part before it gives"):
        luciole.Parts([second, first], ["image"], ["logits"])
    with pytest.raises(LucioleError, match="no part gives output 'other'"):
        luciole.Parts([first, second], ["image"], ["other"])
    with pytest.raises(LucioleError, match="no part takes input 'other'"):
        luciole.Parts([first, second], ["other"], ["logits"])


def test_tensors_are_found_by_the_short_names_of_tables() -> None:
    model = residual()
    for op in model.graph.ops:
        op.output.name = f"net/{op.output.name}/BiasAdd;net/{op.output.name}/filter"
    whole = {op.output.name.split("/")[1]: op.output.name for op in model.graph.ops}
    part = luciole.cut(model, outputs=["sum"], inputs=["pool"])
    assert [v.name for v in (*part.graph.inputs, *part.graph.outputs)] == [
        whole["pool"],
        whole["sum"],
    ]
    asked = luciole.run(model, pixels(2), outputs=["pool"])
    np.testing.assert_array_equal(
        asked["pool"], luciole.run(model, pixels(2), outputs=[whole["pool"]])[whole["pool"]]
    )
    with pytest.raises(LucioleError, match="no tensor is called 'BiasAdd'"):
        luciole.cut(model, outputs=["BiasAdd"])
