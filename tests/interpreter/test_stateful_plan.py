"""Variables by name are compiled once they are known, and give what LiteRT gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.kinds_recurrent import streaming
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter, Observer
from luciole.ir import Array, Graph, LucioleError, Model, Signature, TensorType, Value
from luciole.ir.ops.control_flow import If
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle

pytestmark = pytest.mark.filterwarnings("error")


def frames(count: int) -> list[Array]:
    random = np.random.default_rng(5)
    return [random.normal(0, 1, (1, 1, 1, 40)).astype(np.float32) for _ in range(count)]


def answers(interpreter: Any, given: list[Array]) -> list[Array]:
    interpreter.allocate_tensors()
    found = []
    for frame in given:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], frame)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return found


def is_compiled(interpreter: Interpreter) -> bool:
    return interpreter.plan.compiled_steps() is not None


def test_a_stream_is_that_of_litert_and_compiled_from_the_second_step_on() -> None:
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    content = streaming()
    ours = Interpreter(from_bytes(content))
    ours.allocate_tensors()
    assert not is_compiled(ours)
    found = answers(ours, frames(8))
    assert is_compiled(ours)
    wanted = answers(LiteRT(model_content=content, num_threads=1), frames(8))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    assert len({a.tobytes() for a in found}) == 8


def test_an_observed_stream_is_the_same() -> None:
    model = from_bytes(streaming())
    plain, observed = Interpreter(model), Interpreter(model)
    wanted = answers(plain, frames(6))
    found = answers(observed, frames(2))
    observed.attach_observer(Observer())
    found += answers(observed, frames(4)[2:])
    observed.plan.run_timed()
    np.testing.assert_array_equal(found, wanted[:4])


def counting(first: tuple[int, ...] = (3,)) -> tuple[Model, Graph]:
    """A model that adds its input to what a variable holds; and a graph that sets it."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (3,))
    graph.append(VarHandle(shared_name="sum"), "handle")
    handle = graph.ops[0].results[0]
    before = graph.add_value(Value("before", TensorType.FLOAT32, (3,)))
    graph.append(ReadVariable(handle), results=[before])
    graph.append(Add(before, x), "after")
    graph.append(AssignVariable(handle, graph.ops[-1].results[0]))
    graph.outputs = [graph.ops[2].results[0]]
    setting = model.add_graph(Graph("set"))
    start = setting.add_input("start", first)
    setting.append(VarHandle(shared_name="sum"), "handle")
    setting.append(AssignVariable(setting.ops[0].results[0], start))
    setting.outputs = [start]
    model.signatures = [
        Signature("add", graph, [("x", x)], [("after", graph.outputs[0])]),
        Signature("set", setting, [("start", start)], [("start", start)]),
    ]
    return model, setting


def test_what_another_graph_assigns_is_read_by_compiled_steps() -> None:
    interpreter = Interpreter(counting()[0])
    add, begin = (interpreter.get_signature_runner(key) for key in ("add", "set"))
    ones = np.ones(3, np.float32)
    with pytest.raises(LucioleError, match="'sum' is read before anything was assigned to it"):
        add(x=ones)
    begin(start=ones)
    sums = [add(x=ones)["after"].tolist() for _ in range(3)]
    begin(start=5 * ones)
    sums.append(add(x=ones)["after"].tolist())
    assert sums == [[n] * 3 for n in (2, 3, 4, 6)]
    assert is_compiled(interpreter)


def test_a_variable_that_is_given_another_shape_is_refused_again() -> None:
    interpreter = Interpreter(counting((None,))[0])  # type: ignore[arg-type]  # any length
    add, begin = (interpreter.get_signature_runner(key) for key in ("add", "set"))
    ones = np.ones(3, np.float32)
    begin(start=ones)
    assert [add(x=ones)["after"].tolist() for _ in range(2)] == [[2] * 3, [3] * 3]
    begin(start=np.zeros(5, np.float32))
    with pytest.raises(LucioleError, match=r"'before' is float32 \[5\], expected FLOAT32 \[3\]"):
        add(x=ones)
    begin(start=ones)
    assert [add(x=ones)["after"].tolist() for _ in range(2)] == [[2] * 3, [3] * 3]


def test_variables_that_a_called_graph_assigns_are_left_to_the_reference() -> None:
    model, setting = counting()
    graph = model.graph
    asked = graph.add_input("asked", (), TensorType.BOOL)
    start = graph.add_input("start", (3,))
    other = model.add_graph(Graph("keep"))
    other.outputs = [other.add_input("start", (3,))]
    call = If(asked, (start,), then_graph=setting, else_graph=other)
    graph.insert_before(graph.ops[0], call, "set")
    interpreter = Interpreter(model)
    ones = np.ones(3, np.float32)
    sums = [
        interpreter.run({"x": ones, "asked": np.array(asked), "start": start * ones})["after"][0]
        for asked, start in ((True, 1), (False, 7), (False, 7), (True, 4), (False, 0))
    ]
    assert sums == [2, 3, 4, 5, 6]
    assert not is_compiled(interpreter)
