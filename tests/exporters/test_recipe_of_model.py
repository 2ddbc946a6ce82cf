"""Models as recipes: what is cooked from them again is the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters.circle.tables import to_tables
from luciole.exporters.recipe.text import Recipe, to_recipe
from luciole.importers.recipe.cook import import_recipe
from luciole.ir import Buffer, Graph, Model, TensorType, UnknownOp, Value
from luciole.ir.errors import FormatError, UnsupportedError
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.elementwise_unary import Abs
from luciole.schema import tables
from luciole.schema.dialect import CIRCLE, TFLITE, Dialect
from tests.lq_support import random_input, random_layer
from tests.networks import network
from tests.proto_support import message_class
from tests.schema.recipes import recipes
from tests.support import data_path

FOLDERS = {
    "tflite": TFLITE,
    "tflchef-tests": TFLITE,
    "circle": CIRCLE,
    "circlechef-tests": CIRCLE,
}
ALL = 10**9


def again(model: Model, dialect: Dialect = CIRCLE) -> tuple[Model, Recipe]:
    """What the model's recipe cooks."""
    recipe = to_recipe(model, ALL, dialect)
    return import_recipe(recipe.text), recipe


@pytest.mark.parametrize("folder", FOLDERS)
def test_recipes_survive_the_way_through_a_model(folder: str) -> None:
    """All do, not only those that ONE marks; of these ONE's own messages take the new text."""
    cls = message_class("circlechef" if folder.startswith("circle") else "tflchef")
    from google.protobuf import text_format

    marked = 0
    for path in recipes(folder):
        model = import_recipe(path.read_text())
        cooked, recipe = again(model, FOLDERS[folder])
        assert to_tables(cooked) == to_tables(model), path
        assert recipe.notes == [], path
        if (path.parent / "test.reverse").exists():
            marked += 1
            text_format.Parse(recipe.text, cls())
    assert marked == {"tflite": 223, "tflchef-tests": 4, "circle": 6, "circlechef-tests": 1}[folder]


@pytest.mark.parametrize("name", ["kws_int8", "mnist_lstm_fp32"])
def test_real_models_come_back(name: str) -> None:
    model = luciole.load(data_path(f"models/{name}.tflite"))
    cooked, recipe = again(model, TFLITE)
    wanted, found = to_tables(model), to_tables(cooked)
    for a, b in zip(wanted.subgraphs or [], found.subgraphs or [], strict=True):
        assert [_tensor(t, wanted) for t in a.tensors or []] == [
            _tensor(t, found) for t in b.tensors or []
        ]
        assert [_operator(o) for o in a.operators or []] == [
            _operator(o) for o in b.operators or []
        ]
        assert (list(_ints(a.inputs)), list(_ints(a.outputs))) == (
            list(_ints(b.inputs)),
            list(_ints(b.outputs)),
        )
    assert found.operator_codes == wanted.operator_codes
    entries = len(model.metadata)
    assert recipe.notes[:2] == ["the description", f"metadata ({entries})"]


def _ints(numbers: object) -> list[int]:
    return [] if numbers is None else np.asarray(numbers).tolist()


def _tensor(tensor: tables.Tensor, root: tables.Model) -> list[object]:
    """What a recipe holds of a tensor, the buffer by its bytes."""
    data = (root.buffers or [])[tensor.buffer].data
    raw = b"" if data is None else data.tobytes()
    quantization = tensor.quantization or tables.QuantizationParameters()
    facts = [tensor.name, tensor.type, _ints(tensor.shape), _ints(tensor.shape_signature)]
    return [*facts, tensor.is_variable, raw, quantization]


def _operator(operator: tables.Operator) -> list[object]:
    options = operator.builtin_options
    shown = options if options is not None and options.fields else None
    return [operator.opcode_index, _ints(operator.inputs), _ints(operator.outputs), shown]


def test_learned_levels_come_back() -> None:
    model = random_layer(20, 3, 2, 2).model(random_input((1, 20)))
    cooked, recipe = again(model)
    assert to_tables(cooked) == to_tables(model)
    assert 'type: "LQFullyConnected"' in recipe.text
    assert "lq_fully_connected_options { hidden_size: 20" in recipe.text


def test_large_constants_become_random_ones_like_them() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    array = np.random.default_rng(0).normal(3, 0.25, 5000).astype(np.float32)
    graph.add_constant("large", array)
    graph.add_constant("same", np.full(5000, -2, np.int8))
    graph.add_constant("flags", np.arange(200) % 2 == 0)
    recipe = to_recipe(model)
    large, same, flags = import_recipe(recipe.text).graph.values
    assert large.data is not None
    assert same.data is not None
    assert flags.data is not None
    assert float(large.data.mean()) == pytest.approx(3, abs=0.03)
    assert float(large.data.std()) == pytest.approx(0.25, abs=0.02)
    assert same.data.tolist() == [-2] * 5000
    np.testing.assert_array_equal(flags.data, np.arange(200) % 2 == 0)
    assert recipe.notes == ["the values of large constants, which become random (1)"]
    assert 'tag: "constant" arg: "-2"' in recipe.text


def test_every_kind_of_constant_comes_back() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    for dtype in (np.float16, np.float64, np.int64, np.uint16, np.bool_, np.complex64):
        graph.add_constant(dtype.__name__, np.array([[0, 1], [2, -0.0]]).astype(dtype))
    graph.add_constant("nan", np.array([np.nan, np.inf, -np.inf, 1e-45, 0.1], np.float32))
    graph.add_constant("zeros", np.array([0.0, -0.0], np.float32))
    graph.add_constant("nibbles", np.arange(-8, 8), TensorType.INT4)
    graph.add_constant("empty", np.zeros((2, 0), np.float32))
    texts = np.frombuffer(bytes([1, 0, 0, 0, 12, 0, 0, 0, 14, 0, 0, 0]) + b"a\xff", np.uint8)
    graph.add_value(Value("texts", TensorType.STRING, (1,), Buffer(texts)))
    cooked, _ = again(model)
    for old, new in zip(graph.values, cooked.graph.values, strict=True):
        assert (new.dtype, new.shape) == (old.dtype, old.shape)
        assert old.buffer is not None
        assert new.buffer is not None
        assert old.buffer.data is not None
        assert new.buffer.data is not None
        assert new.buffer.data.tobytes() == old.buffer.data.tobytes(), old.name


def test_names_are_made_different() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1,))
    graph.append(Abs(x), "x")
    graph.append(Abs(graph.ops[0].output), "")
    graph.outputs = [graph.ops[1].output]
    cooked, recipe = again(model)
    assert [v.name for v in cooked.graph.values] == ["x", "x_1", "tensor_2"]
    assert recipe.notes == ["renamed tensors (2)"]


def test_options_are_spelled_for_the_chef_of_the_format() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x, y = graph.add_input("x", (2, 2)), graph.add_input("y", (2, 2))
    graph.append(BatchMatMul(x, y, adjoint_lhs=True), "z")
    assert "batch_matmul_options { adjoint_lhs: true }" in again(model, CIRCLE)[1].text
    assert "batch_matmul_options { adj_x: true }" in again(model, TFLITE)[1].text


def test_custom_options_that_one_does_not_know_are_kept_as_bytes() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1,))
    raw = bytes(range(256))
    for code, options in (("Magic", raw), ("Magic", b""), ("AddV2", raw)):
        op = UnknownOp(32, [x], custom_code=code, custom_options=np.frombuffer(options, np.uint8))
        graph.append(op, results=[graph.add_value(Value(f"y{len(graph.ops)}", x.dtype, (1,)))])
    cooked, _ = again(model)
    found = [op for op in cooked.graph.ops if isinstance(op, UnknownOp)]
    assert [op.custom for op in found] == ["Magic", "Magic", "AddV2"]
    assert [op.custom_options.tobytes() for op in found] == [raw, b"", raw]


def test_recipes_refuse_an_operator_without_a_name() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(
        UnknownOp(120000, [graph.add_input("x", (1,))]),
        results=[graph.add_value(Value("y", TensorType.FLOAT32, (1,)))],
    )
    with pytest.raises(UnsupportedError):
        to_recipe(model)


def test_the_notes_say_what_is_lost(tmp_path: Path) -> None:
    model = network()
    model.metadata.append(("notes", Buffer(np.zeros(3, np.uint8))))
    op = model.graph.ops[0]
    op.intermediates = (model.graph.values[0],)
    op.mutating_variable_inputs = (True,)
    assert to_recipe(model, ALL).notes == [
        "the description",
        "metadata (1)",
        "operators' lists of intermediate tensors (1)",
        "operators' lists of changing inputs (1)",
    ]


def test_a_recipe_refuses_a_model_without_a_graph() -> None:
    with pytest.raises(FormatError, match="the model has no graph"):
        to_recipe(Model())
