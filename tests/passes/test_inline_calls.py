"""Graphs in the place of operators that do nothing but call them: STABLEHLO_COMPOSITE and CALL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Observer, compile_graph
from luciole.ir import Array, Graph, GraphError, Model, Op, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.control_flow import Call, StablehloComposite
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.passes.canonical.inline_calls import inline_calls
from tests.support import litert

X = np.array([[-1.5, 2, 0.25], [3, -4, 5]], np.float32)
ATTRIBUTES = tuple(bytes(flexbuffers.Dumps({"epsilon": 0.5})))


def model_of(cls: type[Op] = StablehloComposite, depth: int = 1) -> Model:
    """2 (relu(x + 1)) and relu(x + 1), from a graph that another one calls, ``depth`` in a row."""
    model = Model()
    graphs = [model.add_graph(Graph(f"graph {n}")) for n in range(depth + 1)]
    inner = graphs[-1]
    x = inner.add_input("x", X.shape)
    inner.append(Add(x, inner.add_constant("one", np.ones((1, 1), np.float32))), "sum")
    inner.append(Relu(inner.ops[-1].output), "cut")
    inner.append(
        Mul(inner.ops[-1].output, inner.add_constant("two", np.array([[2]], np.float32))), "twice"
    )
    inner.outputs = [inner.ops[2].output, inner.ops[1].output]
    for outer, called in zip(graphs[-2::-1], graphs[:0:-1], strict=True):
        outer.append(calling(cls, called, [outer.add_input("x", X.shape)]), "a", "b")
        outer.outputs = list(outer.ops[0].results)
    return model


def calling(cls: type[Op], called: Graph, operands: list[Value | None]) -> Op:
    """An operator that calls a graph."""
    given: dict[str, Any] = {"graph_": called}
    if cls is StablehloComposite:
        given = {"decomposition": called, "composite": "my.operator", "composite_version": 2}
        given["composite_attributes"] = ATTRIBUTES
    return cls.from_operands(operands, given)


def run(model: Model) -> list[Array]:
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.parametrize("depth", [1, 3])
def test_composites_give_what_litert_gives_and_are_compiled(depth: int) -> None:
    model = model_of(depth=depth)
    theirs = litert(to_bytes(model, "tflite"), [X])
    for a, b in zip(run(model), theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    plan = compile_graph(model.graph, {model.graph.inputs[0]: X.shape})
    assert [step.native is not None for step in plan.steps] == [True] * 3


def test_calls_are_compiled_too() -> None:
    model = model_of(Call)
    np.testing.assert_array_equal(run(model)[0], 2 * np.maximum(X + 1, 0))
    plan = compile_graph(model.graph, {model.graph.inputs[0]: X.shape})
    assert plan.compiled_steps() is not None


def test_a_model_that_runs_stays_as_it_was_read() -> None:
    content = to_bytes(model_of(depth=2), "tflite")
    model = from_bytes(content)
    (op,) = model.graph.ops
    assert isinstance(op, StablehloComposite)
    assert (op.composite, op.composite_version) == ("my.operator", 2)
    assert op.composite_attributes == ATTRIBUTES
    run(model)
    assert to_bytes(model, "tflite") == content


def test_observers_see_the_call_once_and_only_its_results() -> None:
    model, seen = model_of(depth=2), []

    class Watch(Observer):
        def before_operator(self, op: Op) -> None:
            seen.append(op.kind)

        def after_tensor_write(self, value: Value, array: Array) -> None:
            seen.append(value.name)

    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.attach_observer(Watch())
    interpreter.invoke()
    assert seen[:2] == ["x", "STABLEHLO_COMPOSITE"]
    assert sorted(seen[2:]) == ["a", "b"]


def test_the_pass_leaves_no_call() -> None:
    model = model_of(Call, 3)
    assert inline_calls(model.graph)
    assert [op.kind for op in model.graph.ops] == ["ADD", "RELU", "MUL"]
    assert not inline_calls(model.graph)
    np.testing.assert_array_equal(run(model)[1], np.maximum(X + 1, 0))


def test_what_is_returned_as_it_came_stays_a_call() -> None:
    model = Model()
    main, called = (model.add_graph(Graph(name)) for name in ("main", "same"))
    called.add_input("x", X.shape)
    called.outputs = list(called.inputs)
    main.append(calling(Call, called, [main.add_input("x", X.shape)]), "y")
    main.outputs = [main.ops[0].output]
    assert not inline_calls(main)
    np.testing.assert_array_equal(run(model)[0], X)


def test_the_pass_refuses_graphs_that_call_themselves() -> None:
    model = Model()
    main = model.add_graph(Graph("main"))
    main.outputs = [main.add_input("x", X.shape)]
    main.append(calling(Call, main, [main.inputs[0]]), results=[])
    with pytest.raises(GraphError, match="calls itself"):
        inline_calls(main)
