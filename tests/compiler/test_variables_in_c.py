"""Variables by name in C: they last from run to run, and begin with what CALL_ONCE sets."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, TensorType, UnsupportedError, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import CallOnce, If, While
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reduce import Sum
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


def counted(*, begun: bool = True) -> Model:
    """Adds a row to a variable as often as an input says, in the body of a loop, and returns the
    variable (the row if it was not ``begun``); a branch doubles it before, where the row sums to
    less than 0.
    """
    model = Model()
    names = ("main", "first", "again", "step", "doubled", "kept")
    graph, first, again, step, doubled, kept = (model.add_graph(Graph(n)) for n in names)
    numbers = first.add_constant("numbers", np.array([1, 2, 3], np.float32))
    first.append(AssignVariable(handle_of(first, "total"), numbers))

    def read(graph: Graph) -> tuple[Value, Value]:
        handle = handle_of(graph, "total")
        held = graph.add_value(Value(f"{graph.name}_held", TensorType.FLOAT32, (3,)))
        graph.append(ReadVariable(handle), results=[held])
        return handle, held

    def ends(graph: Graph) -> list[Value]:
        shapes = {"count": (1,), "limit": (1,), "row": (3,)}
        return [graph.add_input(f"{graph.name}_{name}", dims) for name, dims in shapes.items()]

    count, limit, _ = ends(again)
    again.outputs = [again.append(Less(count, limit), "less").output]
    count, limit, row = ends(step)
    handle, held = read(step)
    step.append(AssignVariable(handle, step.append(Add(held, row), "more").output))
    one = step.add_constant("one", np.ones(1, np.float32))
    step.outputs = [step.append(Add(count, one), "next").output, limit, row]
    row = doubled.add_input("doubled_row", (3,))
    handle, held = read(doubled)
    doubled.append(AssignVariable(handle, doubled.append(Add(held, held), "twice").output))
    doubled.outputs = [row]
    kept.outputs = [kept.add_input("kept_row", (3,))]
    if begun:
        graph.append(CallOnce(init_graph=first))
    x, times = graph.add_input("x", (3,)), graph.add_input("times", (1,))
    zero = graph.add_constant("zero", np.zeros(1, np.float32))
    over = graph.add_constant("over", np.array([0], np.int32))
    truth = graph.append(Less(graph.append(Sum(x, over), "sum").output, zero), "truth").output
    same = graph.append(If(truth, (x,), then_graph=doubled, else_graph=kept), "same").results[0]
    loop = While((zero, times, same), condition_graph=again, body_graph=step)
    graph.append(loop, "counted", "limit", "row")
    graph.outputs = [read(graph)[1]] if begun else [loop.results[2]]
    return model


def test_loops_and_branches_share_the_variables_of_the_main_graph(tmp_path: Path) -> None:
    model = counted()
    compiled, interpreter = built(program_of(model), tmp_path), Interpreter(model)
    rng = np.random.default_rng(0)
    for times in (2, 0, 3, 1):
        x = rng.normal(size=3).astype(np.float32)
        given = {"x": x, "times": np.array([times], np.float32)}
        (found,), (wanted,) = compiled.run(given), interpreter.run(given).values()
        np.testing.assert_array_equal(found, wanted)


def test_called_graphs_refuse_variables_that_have_no_value_yet() -> None:
    with pytest.raises(UnsupportedError, match="'total' has no value that CALL_ONCE sets"):
        program_of(counted(begun=False))
