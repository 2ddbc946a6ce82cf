"""Variables by name in C: they last from run to run, and begin with what CALL_ONCE sets."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, TensorType, UnsupportedError, Value
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from tests.compiler_support import QUICK, STRICT, built, needs_compiler, program_of

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


def test_instances_have_states_of_their_own_and_nothing_else_is_written(tmp_path: Path) -> None:
    model = totals()
    program = program_of(model, arena="caller")
    for name, text in program.files.items():
        (tmp_path / name).write_text(text)
    made = [str(tmp_path / name) for name in ("net.c", "net.so", "net.o")]
    subprocess.run(["cc", *QUICK, made[0], "-o", made[1]], check=True)
    subprocess.run(["cc", *STRICT, "-c", made[0], "-o", made[2]], check=True)
    sizes = subprocess.run(["size", made[2]], check=True, capture_output=True, text=True).stdout
    assert sizes.splitlines()[1].split()[1:3] == ["0", "0"]  # data and bss
    library = ctypes.CDLL(made[1])
    states = [ctypes.create_string_buffer(program.state_bytes) for _ in range(2)]
    interpreters = [Interpreter(model) for _ in states]
    arena = (ctypes.c_int64 * (program.arena_bytes // 8 + 1))()
    for state in states:
        library.net_reset(state)
    for k in (0, 1, 0, 0, 1, 1):
        x, found = np.full(3, k + 0.5, np.float32), np.zeros(3, np.float32)
        places = [ctypes.c_void_p(array.ctypes.data) for array in (x, found)]
        library.net_run(states[k], arena, *places)
        (wanted,) = interpreters[k].run({"x": x}).values()
        np.testing.assert_array_equal(found, wanted)


def test_a_variable_that_nothing_was_assigned_to_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'total' is read before anything was assigned"):
        program_of(totals(begun=False))


def test_a_network_that_only_writes_a_variable_has_a_library(tmp_path: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (3,))
    graph.append(AssignVariable(handle_of(graph, "last"), x))
    assert built(program_of(model), tmp_path).run({"x": np.ones(3, np.float32)}) == []
