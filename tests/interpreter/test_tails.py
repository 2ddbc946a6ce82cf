"""Operators whose extents are known only while a model runs: compiled then, equal to LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.memory import MemoryLimitError
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.gather_nd import GatherNd
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.resize import ResizeBilinear
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.where import Where
from luciole.schema.enums import Padding
from tests.support import litert

RNG = np.random.default_rng(5)
IMAGE = RNG.normal(size=(1, 4, 4, 3)).astype(np.float32)


def a_graph() -> Graph:
    return Model().add_graph(Graph("main"))


def model_of(graph: Graph, *outputs: Value) -> Model:
    """Through a file, as users' models are."""
    assert graph.model is not None
    graph.outputs = list(outputs)
    return from_bytes(to_bytes(graph.model))


def resized() -> Model:
    """An image is doubled, brought to a size that is given, convolved, and averaged; one of the
    results has extents that are known before, and one is a view.
    """
    graph = a_graph()
    x = graph.add_input("x", IMAGE.shape)
    size = graph.add_input("size", (2,), TensorType.INT32)
    twice = graph.append(Add(x, x), "twice").output
    large = graph.append(ResizeBilinear(twice, size), "large").output
    filters = graph.add_constant("filters", RNG.normal(0, 0.1, (5, 3, 3, 3)).astype(np.float32))
    bias = graph.add_constant("bias", np.ones(5, np.float32))
    layer = Conv2D(large, filters, bias, padding=Padding.SAME, stride_h=1, stride_w=1)
    y = graph.append(layer, "y").output
    axes = graph.add_constant("axes", np.array([1, 2], np.int32))
    mean = graph.append(Mean(y, axes, keep_dims=False), "mean").output
    flat = graph.append(Reshape(mean, graph.add_constant("f", np.array([5], np.int32))), "flat")
    extents = graph.append(Shape(y, out_type=TensorType.INT32), "extents").output
    last = graph.append(Neg(graph.append(Relu(flat.output), "r").output), "last").output
    return model_of(graph, y, flat.output, extents, last)


def chosen() -> Model:
    """Rows of a table where a condition holds, as many times as a size says."""
    graph = a_graph()
    condition = graph.add_input("condition", (6,), TensorType.BOOL)
    table = graph.add_input("table", (6, 4))
    times = graph.add_input("times", (2,), TensorType.INT32)
    twice = graph.append(Mul(table, table), "twice").output
    places = graph.append(Where(condition), "places").output
    rows = graph.append(GatherNd(twice, places), "rows").output
    many = graph.append(Tile(rows, times), "many").output
    axis = graph.add_constant("axis", np.array(0, np.int32))
    deep = graph.append(ExpandDims(graph.append(Neg(many), "less").output, axis), "deep").output
    return model_of(graph, rows, deep)


def ready(model: Model, memory_limit: int = 1 << 30) -> Interpreter:
    interpreter = Interpreter(model, memory_limit=memory_limit)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, arrays: Sequence[Array]) -> list[Array]:
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def compiled(interpreter: Interpreter) -> list[str]:
    return [s.source.name for s in interpreter.plan.steps if s.native is not None]


def same(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def sizes(*pairs: tuple[int, int]) -> list[Array]:
    return [np.array(pair, np.int32) for pair in pairs]


SIZES = sizes((5, 7), (5, 7), (2, 3), (5, 7), (2, 3), (2, 3), (2, 3), (8, 8), (1, 1), (1, 1))


def test_sizes_that_come_and_go_give_what_litert_gives() -> None:
    model = resized()
    content, interpreter = to_bytes(model, "tflite"), ready(model)
    seen = []
    for number, size in enumerate(SIZES):
        arrays = [IMAGE / (number + 1), size]
        same(run(interpreter, arrays), litert(content, arrays))
        seen.append("y" in compiled(interpreter))
    assert seen[0], "compiled at once"
    assert seen[-1], "compiled for what came twice"


def test_all_that_waited_for_a_size_is_compiled() -> None:
    interpreter = ready(resized())
    assert compiled(interpreter) == ["twice", "r", "last"]
    run(interpreter, [IMAGE, SIZES[0]])
    assert compiled(interpreter) == ["twice", "large", "y", "mean", "r", "last"]
    assert not any(step.reason for step in interpreter.plan.steps)


def test_tensors_between_can_be_read() -> None:
    model = resized()
    interpreter = ready(model)
    run(interpreter, [IMAGE, SIZES[0]])
    names = [value.name for value in model.graph.values]
    large, mean = (interpreter.get_tensor(names.index(name)) for name in ("large", "mean"))
    y = interpreter.get_output_details()[0]["index"]
    assert large.shape == (1, 5, 7, 3)
    np.testing.assert_allclose(mean, interpreter.get_tensor(y).mean((1, 2)), rtol=1e-5)


def test_what_a_condition_leaves_gives_what_litert_gives() -> None:
    model = chosen()
    content, interpreter = to_bytes(model, "tflite"), ready(model)
    table = RNG.normal(size=(6, 4)).astype(np.float32)
    conditions = [RNG.random(6) < share for share in (0.5, 0.5, 0.9, 1, 1, 0, 0, 0.5)]
    for condition, times in zip(conditions, chain(SIZES[:4], repeat(SIZES[2])), strict=False):
        arrays = [np.asarray(condition), table, times]
        same(run(interpreter, arrays), litert(content, arrays))
        same(run(interpreter, arrays), litert(content, arrays))
    run(interpreter, arrays)
    assert compiled(interpreter) == ["twice", "many", "less"]


def test_times_are_those_of_the_steps_that_run() -> None:
    interpreter = ready(resized())
    run(interpreter, [IMAGE, SIZES[0]])
    for size in (SIZES[0], SIZES[2], SIZES[2], SIZES[2]):
        run(interpreter, [IMAGE, size])
        times = interpreter.plan.run_timed()
        assert len(times) == len(interpreter.plan.steps)
        assert (times >= 0).all()
        assert run(interpreter, [IMAGE, size])[0].shape == (1, *size, 5)


def test_a_tail_refuses_sizes_beyond_the_memory() -> None:
    interpreter = ready(resized(), memory_limit=1 << 20)
    run(interpreter, [IMAGE, SIZES[0]])
    with pytest.raises(MemoryLimitError):
        run(interpreter, [IMAGE, *sizes((30_000, 30_000))])
    same(run(interpreter, [IMAGE, SIZES[0]])[2:3], [np.array([1, 5, 7, 5])])


def test_memory_that_a_tail_takes_is_told() -> None:
    interpreter = ready(resized())
    before = interpreter.plan.arena_bytes
    run(interpreter, [IMAGE, SIZES[0]])
    assert interpreter.plan.arena_bytes >= before + 4 * (5 * 7 * 3 + 5 * 7 * 5)
