"""State by name: what is read is what was assigned, in the shape that the file says."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, LucioleError, Model, TensorType, Value
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from luciole.kernels.core.state import State
from tests.support import invoked_again


def reading(assigned: tuple[int, ...] | None, expected: tuple[int | None, ...]) -> Model:
    """Assigns ones of a shape to a variable (or nothing) and reads it as another shape."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(VarHandle(shared_name="state"), "handle")
    handle = graph.ops[0].output
    if assigned is not None:
        graph.append(
            AssignVariable(handle, graph.add_constant("ones", np.ones(assigned, np.int32)))
        )
    held = graph.add_value(Value("held", TensorType.INT32, expected))
    graph.append(ReadVariable(handle), results=[held])
    graph.outputs = [held]
    return model


@pytest.mark.parametrize("expected", [(2, 3), (None, 3), (None, None)])
def test_a_variable_holds_what_was_assigned(expected: tuple[int | None, ...]) -> None:
    (held,) = invoked_again(Interpreter(reading((2, 3), expected)), [])
    np.testing.assert_array_equal(held, np.ones((2, 3), np.int32), strict=True)


@pytest.mark.parametrize("expected", [(3, 2), (6,), (None, 2)])
def test_reading_refuses_another_shape(expected: tuple[int | None, ...]) -> None:
    interpreter = Interpreter(reading((2, 3), expected))
    for _ in range(2):
        with pytest.raises(LucioleError, match=r"result 'held' is int32 \[2,3\], expected INT32"):
            interpreter.run({})


def test_reading_refuses_a_variable_without_contents() -> None:
    interpreter = Interpreter(reading(None, (1,)))
    for _ in range(2):
        with pytest.raises(LucioleError, match="'state' is read before anything was assigned"):
            interpreter.run({})


def test_state_refuses_numbers_of_no_variable() -> None:
    state = State(loop_limit=1)
    assert [state.handle("", name) for name in ("a", "b", "a")] == [0, 1, 0]
    with pytest.raises(LucioleError, match="there is no variable 2"):
        state.read(2)
    with pytest.raises(LucioleError, match="there is no variable -1"):
        state.assign(-1, np.zeros(1))


def test_what_a_variable_holds_is_a_copy() -> None:
    state, array = State(loop_limit=1), np.zeros(2)
    handle = state.handle("", "a")
    state.assign(handle, array)
    array[0] = 1
    assert state.read(handle).tolist() == [0, 0]
