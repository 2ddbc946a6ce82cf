"""Variable tensors: they persist from run to run, and reset to what the file says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, GraphError, Model, TensorType, Value
from luciole.ir.ops.elementwise_binary import Add
from tests.support import data_path

DIGITS = "models/mnist_lstm_fp32.tflite"


def images(count: int) -> Array:
    with np.load(data_path("mnist.npz")) as data:
        pixels: Array = data["x_test"][:count]
    return (pixels / 255).astype(np.float32)


def litert() -> Any:
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    interpreter = LiteRT(
        str(data_path(DIGITS)), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    return interpreter


def invoke(interpreter: Any, image: Array) -> Array:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[None])
    interpreter.invoke()
    result: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def test_an_lstm_keeps_its_state_from_run_to_run_as_litert_does() -> None:
    ours, theirs = luciole.Interpreter(data_path(DIGITS)), litert()
    ours.allocate_tensors()
    states = [v for v in ours.graph.values if v.is_variable]
    assert states != []
    seen = []
    for image in images(5):
        found, wanted = invoke(ours, image), invoke(theirs, image)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
        seen.append(found)
        for state in states:
            place = ours.graph.values.index(state)
            np.testing.assert_allclose(
                ours.get_tensor(place), theirs.get_tensor(place), rtol=0, atol=1e-4
            )
    ours.reset_all_variables()
    theirs.reset_all_variables()
    again = invoke(ours, images(1)[0])
    np.testing.assert_array_equal(again, seen[0])
    np.testing.assert_allclose(again, invoke(theirs, images(1)[0]), rtol=0, atol=1e-5)
    second_without_state = luciole.Interpreter(data_path(DIGITS)).run(images(2)[1:])
    assert np.abs(next(iter(second_without_state.values())) - seen[1]).max() > 1e-4


def test_records_start_with_fresh_state() -> None:
    interpreter = luciole.Interpreter(data_path(DIGITS))
    name = interpreter.graph.inputs[0].name
    found = next(iter(outputs_of(interpreter, {name: images(6)}).values()))
    alone = [
        next(iter(luciole.Interpreter(data_path(DIGITS)).run(image[None]).values()))
        for image in images(6)
    ]
    np.testing.assert_allclose(found, np.concatenate(alone), rtol=0, atol=1e-6)


def stateful(initial: Array | None) -> Model:
    """y = x + state; nothing changes the state but the caller."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 3))
    state = graph.add_value(Value("state", TensorType.FLOAT32, (1, 3)))
    if initial is not None:
        state.set_data(initial)
    state.is_variable = True
    graph.append(Add(x, state), "y")
    graph.outputs = [graph.values[-1]]
    return model


@pytest.mark.parametrize("initial", [None, np.array([[1, 2, 3]], np.float32)])
@pytest.mark.parametrize("reread", [False, True])
def test_variables_begin_with_zeros_or_what_the_file_says(
    initial: Array | None, reread: bool
) -> None:
    model = stateful(initial)
    interpreter = (
        luciole.Interpreter(model_content=to_bytes(model)) if reread else Interpreter(model)
    )
    first = np.zeros((1, 3), np.float32) if initial is None else initial
    x = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(interpreter.run(x)["y"], x + first)
    interpreter.set_tensor(1, np.full((1, 3), 7, np.float32))
    np.testing.assert_array_equal(interpreter.run(x)["y"], x + 7)
    np.testing.assert_array_equal(interpreter.run(x)["y"], x + 7)
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(interpreter.run(x)["y"], x + first)


def test_a_resize_begins_anew() -> None:
    interpreter = Interpreter(stateful(None))
    x = np.ones((1, 3), np.float32)
    interpreter.run(x)
    interpreter.set_tensor(1, np.full((1, 3), 7, np.float32))
    interpreter.run(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(interpreter.run(x)["y"], x)


def test_a_resize_refuses_a_variable_whose_first_contents_do_not_fit_any_more() -> None:
    model = stateful(np.array([[1, 2, 3]], np.float32))
    model.graph.inputs.append(model.graph.values[1])
    interpreter = Interpreter(model)
    interpreter.resize_tensor_input(1, (2, 3))
    for _ in range(2):
        with pytest.raises(GraphError, match=r"variable 'state' begins with 12 bytes, \[2,3\] of"):
            interpreter.allocate_tensors()
    interpreter.resize_tensor_input(1, (1, 3))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [[1, 2, 3]]


def test_reset_before_run_needs_no_memory() -> None:
    interpreter = Interpreter(stateful(np.array([[1, 2, 3]], np.float32)))
    interpreter.reset_before_run()
    np.testing.assert_array_equal(
        interpreter.run(np.zeros((1, 3), np.float32))["y"], np.array([[1, 2, 3]])
    )
