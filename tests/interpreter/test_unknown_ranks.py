"""Tensors of which a file gives no rank: as LiteRT runs them, and written back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, TensorType, UnknownOp, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.rank import Rank
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.resize import ResizeNearestNeighbor
from luciole.ir.ops.shape import Shape
from luciole.ir.passes.canonical.infer_shapes import infer_shapes
from luciole.ir.passes.folding.fold_constants import FoldConstants
from luciole.ir.value import UNRANKED, compatible, shape_text
from luciole.ir.verify import verify
from luciole.kernels.core.custom import FUNCTIONS
from luciole.kernels.core.evaluation import evaluate
from tests.support import data_path, invoked_again, litert


@pytest.fixture(autouse=True)
def own_functions() -> Iterator[None]:
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


def unranked(graph: Graph, op: Any, name: str) -> Value:
    """Append an operator of whose result the file will say nothing but ``[]``."""
    value = graph.add_value(Value(name, TensorType.FLOAT32, UNRANKED))
    return graph.append(op, results=[value]).output


def resized() -> Model:
    """Two tensors without a rank, made one from the other, and a third from them by its axes."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x, size = graph.add_input("x", (1, 4, 4, 2)), graph.add_input("size", (2,), TensorType.INT32)
    r = unranked(graph, ResizeNearestNeighbor(x, size), "r")
    q = unranked(graph, Mul(r, r), "q")
    axes = graph.add_constant("axes", np.array([1, 2], np.int32))
    m = unranked(graph, Mean(q, axes, keep_dims=True), "m")
    graph.outputs = [q, m]
    return from_bytes(to_bytes(model))


def after_custom(extents: tuple[int, ...]) -> Model:
    """A custom operator of unknown rank and what is known only by it."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (4,))
    y = unranked(graph, UnknownOp(32, [x], custom_code="Any"), "y")
    z = graph.append(Reshape(y, graph.add_constant("s", np.array(extents, np.int32))), "z").output
    axes = Shape(y, out_type=TensorType.INT32)
    found = [graph.append(op, op.kind).output for op in (Relu(z), Rank(y), axes)]
    graph.outputs = [*found, unranked(graph, Relu(y), "w")]
    return from_bytes(to_bytes(model))


SIZES = [(2, 3), (4, 4), (1, 1)]


@pytest.mark.parametrize("size", SIZES)
def test_what_inference_computes_counts_as_in_litert(size: tuple[int, int]) -> None:
    content = to_bytes(resized(), "tflite")
    x = np.random.default_rng(0).normal(size=(1, 4, 4, 2)).astype(np.float32)
    wanted = litert(content, (x, np.array(size, np.int32)))
    found = luciole.Interpreter(model_content=content).run({"x": x, "size": np.array(size, "i4")})
    assert wanted[0].shape == (1, *size, 2)
    np.testing.assert_array_equal(found["q"], wanted[0], strict=True)
    np.testing.assert_allclose(found["m"], wanted[1], rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["resize_unknown.tflite", "while_unknown_rank.tflite", "custom_rank.tflite"]
)
def test_files_from_elsewhere_are_sound_and_written_back_as_they_were(name: str) -> None:
    model = from_bytes(data_path(f"foreign/{name}").read_bytes())
    assert [f for f in verify(model) if f.code != "UNKNOWN_OPERATOR"] == []
    before = [(v.name, v.dims, v.has_rank) for g in model.graphs for v in g.values]
    again = from_bytes(to_bytes(model, "tflite"))
    assert [(v.name, v.dims, v.has_rank) for g in again.graphs for v in g.values] == before
    assert ((), False) in [(dims, has_rank) for _, dims, has_rank in before]


@pytest.mark.parametrize("resolver", ["BUILTIN_REF", "AUTO"])
def test_a_loop_on_a_state_without_a_rank_gives_what_litert_gives(resolver: str) -> None:
    content = data_path("foreign/while_unknown_rank.tflite").read_bytes()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter = luciole.Interpreter(model_content=content)
    (found,) = invoked_again(interpreter, [x])
    np.testing.assert_array_equal(found, litert(content, (x,), resolver)[0], strict=True)
    np.testing.assert_array_equal(found, 8 * x)
    assert [step.native is not None for step in interpreter.plan.steps] == [True]


def test_an_input_without_a_rank_takes_any_shape_as_in_litert() -> None:
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", ())
    graph.outputs = [unranked(graph, Mul(x, x), "y")]
    content = to_bytes(model, "tflite")
    for shape in ((), (2, 3), (1, 2, 1, 2)):
        array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
        results = []
        for cls in (luciole.Interpreter, LiteRT):
            interpreter = cls(model_content=content)
            interpreter.resize_tensor_input(0, shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, array)
            interpreter.invoke()
            results.append(np.asarray(interpreter.get_tensor(1)))
        np.testing.assert_array_equal(results[0], results[1], strict=True)


@pytest.mark.parametrize("shape", [(4,), (1, 2, 2), (2, 2)])
def test_the_axes_of_a_custom_operator_are_what_its_function_gives(shape: tuple[int, ...]) -> None:
    luciole.custom_operator("Any")(lambda x: x.reshape(shape) - np.float32(2))
    model = after_custom((2, -1))
    x = np.arange(4, dtype=np.float32)
    found = Interpreter(model).run(x)
    np.testing.assert_array_equal(found["RELU"], np.array([[0, 0], [0, 1]], "f4"), strict=True)
    np.testing.assert_array_equal(found["RANK"], np.array(len(shape), "i4"), strict=True)
    np.testing.assert_array_equal(found["SHAPE"], np.array(shape, "i4"), strict=True)
    np.testing.assert_array_equal(found["w"], np.maximum(x - 2, 0).reshape(shape), strict=True)


def test_what_follows_a_known_shape_is_compiled_again() -> None:
    luciole.custom_operator("Any")(lambda x: x)
    interpreter = Interpreter(after_custom((2, 2)))
    interpreter.allocate_tensors()
    native = {step.source.name: step.native is not None for step in interpreter.plan.steps}
    assert (native["y"], native["RELU"], native["w"]) == (False, True, False)


def test_a_run_refuses_what_does_not_fit_once_the_rank_is_known() -> None:
    luciole.custom_operator("Any")(lambda x: x[:3])
    with pytest.raises(luciole.LucioleError, match=r"'z': \[3\] does not reshape to \[2, 2"):
        Interpreter(after_custom((2, 2))).run(np.zeros(4, np.float32))


def test_verify_refuses_axes_of_what_the_file_says_is_a_scalar() -> None:
    model = after_custom((2, 2))
    model.graph.values[1].has_rank = True
    assert [f.sentence for f in verify(model) if f.code == "SHAPE"] == [
        "Reshape 'z': [] does not reshape to [2, 2]"
    ]


def test_passes_leave_ranks_open_that_they_do_not_find() -> None:
    graph = after_custom((2, 2)).graph
    before = [(v.dims, v.shape_signature) for v in graph.values]
    assert infer_shapes(graph) is False
    assert FoldConstants(evaluate)(graph) is False
    assert [(v.dims, v.shape_signature) for v in graph.values] == before
    found = resized().graph
    assert infer_shapes(found) is True
    assert [v.shape for v in found.outputs] == [(1, None, None, 2), (1, 1, 1, 2)]


def test_an_unknown_rank_fits_any_and_gives_no_axes() -> None:
    assert compatible(UNRANKED, (1, 2))
    assert compatible((), UNRANKED)
    assert shape_text(UNRANKED) == "[*]"
    assert UNRANKED != ()
    assert None in UNRANKED
    assert 1 not in UNRANKED
    for ask in (len, list, lambda s: s[0], lambda s: (*s,), lambda s: (1, *s)):
        with pytest.raises(luciole.LucioleError, match="number of axes"):
            ask(UNRANKED)
    with pytest.raises(luciole.LucioleError, match="number of axes"):
        (1,) + UNRANKED  # noqa: RUF005  # what is tested
