"""Variables by name in C: they last from run to run, and begin with what CALL_ONCE sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, TensorType, UnsupportedError, Value
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from tests.compiler_support import built, needs_compiler, program_of

pytestmark = needs_compiler


def handle_of(graph: Graph, name: str) -> Value:
    return graph.append(VarHandle(shared_name=name), f"handle_{name}").output


def totals(*, begun: bool = True) -> Model:
    """Adds each input to a variable that begins with 1, 2, 3, and returns it as it was before."""
    model = Model()
    graph, first = model.add_graph(Graph("main")), model.add_graph(Graph("first"))
    numbers = first.add_constant("numbers", np.array([1, 2, 3], np.float32))
    first.append(AssignVariable(handle_of(first, "total"), numbers))
    x = graph.add_input("x", (3,))
    if begun:
        graph.append(CallOnce(init_graph=first))
    handle = handle_of(graph, "total")
    held = graph.add_value(Value("held", TensorType.FLOAT32, (3,)))
    graph.append(ReadVariable(handle), results=[held])
    total = graph.append(Add(held, x), "total").output
    graph.append(AssignVariable(handle, total))
    graph.outputs = [held]
    return model


@pytest.mark.parametrize("arena", ["static", "caller"])
def test_a_variable_lasts_from_run_to_run(arena: str, tmp_path: Path) -> None:
    model = totals()
    compiled = built(program_of(model, arena=arena), tmp_path)
    for _ in range(2):
        interpreter = Interpreter(model)
        for k in range(3):
            x = {"x": np.full(3, k + 0.5, np.float32)}
            (found,), (wanted,) = compiled.run(x), interpreter.run(x).values()
            np.testing.assert_array_equal(found, wanted)
        compiled.reset()


def test_a_variable_that_nothing_was_assigned_to_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'total' is read before anything was assigned"):
        program_of(totals(begun=False))
