"""Loops of a run share one budget of steps, and let Python in on the way, compiled or not."""

from __future__ import annotations

import ctypes
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter, loops
from luciole.interpreter import compile as compile_
from luciole.ir import Graph, LucioleError, Model, TensorType
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import CallOnce, If, While
from luciole.ir.ops.elementwise_binary import Add, Pow
from luciole.kernels.core.budget import Budget, Control
from tests.interpreter import loop_support
from tests.interpreter.small_graphs import add, constant, i32, with_inputs
from tests.support import heed_interrupts, invoked, invoked_again, litert

START = [i32(0), i32(0)]


def nested(*turns: int, slow: bool = False) -> Model:
    """Loops in loops, the first number those of the innermost: each counts its own turns, and the
    innermost all of them, by what is compiled or (``slow``) by what is not.
    """
    model = Model()
    body = with_inputs(model, "body", START)
    count = body.inputs[1]
    one = constant(body, i32(1))
    more = add(body, Pow(one, body.inputs[0])) if slow else one
    body.outputs = [add(body, Add(body.inputs[0], one)), add(body, Add(count, more))]
    for level, most in enumerate(turns):
        condition = with_inputs(model, f"condition{level}", START)
        end = constant(condition, i32(most))
        condition.outputs = [add(condition, Less(condition.inputs[0], end))]
        name = f"turn{level}" if level + 1 < len(turns) else "main"
        body = around(model, name, condition, body)
    model.graphs.insert(0, model.graphs.pop())
    return from_bytes(to_bytes(model))


def around(model: Model, name: str, condition: Graph, body: Graph) -> Graph:
    """A graph that calls a loop, which begins to count at 0, and counts its own calls."""
    graph = with_inputs(model, name, START)
    zero = constant(graph, i32(0))
    graphs = {"condition_graph": condition, "body_graph": body}
    loop = While.from_operands((zero, graph.inputs[1]), graphs)
    graph.append(loop, f"{name}/turns", f"{name}/count")
    turn = add(graph, Add(graph.inputs[0], constant(graph, i32(1))))
    graph.outputs = [turn, loop.results[1]]
    return graph


def steps_of(turns: Sequence[int]) -> int:
    """Of all loops together, the first number those of the innermost."""
    return sum(np.prod(turns[place:], dtype=int) for place in range(len(turns)))


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("turns", [(7,), (3, 5), (2, 3, 4), (0, 3), (4, 0)], ids=str)
def test_a_budget_is_for_all_loops_of_a_run(turns: tuple[int, ...], slow: bool) -> None:
    model, steps = nested(*turns, slow=slow), steps_of(turns)
    exact = Interpreter(model, loop_limit=max(steps, 1))
    found = invoked_again(exact, START)
    assert found[1].tolist() == np.prod(turns)
    assert (exact.plan.steps[0].native is None) == slow
    for ours, theirs in zip(found, litert(to_bytes(model, "tflite"), START), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    if not steps:
        return
    scarce = Interpreter(model, loop_limit=steps - 1)
    for _ in range(2):
        with pytest.raises(LucioleError, match=f"goes on after {steps - 1} steps in all: raise"):
            invoked(scarce, START)


def test_loops_behind_each_other_share_a_budget() -> None:
    model = nested(7)
    main = model.graph
    (loop,) = (op for op in main.ops if isinstance(op, While))
    again = While.from_operands((constant(main, i32(0)), main.outputs[1]), loop.attributes())
    main.append(again, "again/turns", "again/count")
    main.outputs = list(again.results)
    assert invoked_again(Interpreter(model, loop_limit=14), START)[1].tolist() == 14
    with pytest.raises(LucioleError, match=r"While 'again/turns': .* after 13 steps in all"):
        invoked(Interpreter(model, loop_limit=13), START)


def test_a_run_refuses_loops_in_loops_that_together_take_too_long() -> None:
    """A file of 2 KB asks for 10,000,000,000 steps."""
    model = nested(99_999, 99_999)
    assert len(to_bytes(model)) < 3000
    interpreter = Interpreter(model)
    for _ in range(2):
        with pytest.raises(LucioleError, match="goes on after 100000 steps in all"):
            invoked(interpreter, START)


def test_loops_of_graphs_that_run_once_or_by_a_condition_share_the_budget() -> None:
    model = nested(7)
    main = model.graph
    begin, other = with_inputs(model, "once", []), with_inputs(model, "other", START)
    (loop,) = (op for op in main.ops if isinstance(op, While))
    zeros = [constant(begin, i32(0)) for _ in START]
    begin.append(While.from_operands(zeros, loop.attributes()), "once/turns", "once/count")
    other.outputs = list(other.inputs)
    outer = with_inputs(model, "outer", START)
    outer.append(CallOnce(init_graph=begin))
    asked = outer.add_input("asked", (), TensorType.BOOL)
    choice = If(asked, tuple(outer.inputs[:2]), then_graph=main, else_graph=other)
    outer.outputs = list(outer.append(choice, "y0", "y1").results)
    model.graphs.insert(0, model.graphs.pop())
    interpreter, yes = Interpreter(model, loop_limit=13), [*START, np.array(True)]
    with pytest.raises(LucioleError, match="after 13 steps in all"):
        invoked(interpreter, yes)
    again = invoked_again(interpreter, yes)  # what runs once has run
    assert again[1].tolist() == 7


def test_loops_in_loops_are_planned_once_for_each_level(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def counted_loop(*args: Any) -> Any:
        nonlocal tries
        tries += 1
        return loops.compiled_loop(*args)

    monkeypatch.setitem(compile_.WAYS, While, (counted_loop, loops.repeated))
    assert invoked(Interpreter(nested(*[1] * 16, slow=True)), START)[1].tolist() == 1
    assert tries == 16


# ---------------------------------------------------------------------------- pauses
Clock = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))


def an_hour_later(kind: int, now: Any) -> int:
    """A clock that goes on by an hour whenever somebody looks at it."""
    now[0] += 3600
    return 0


HOURS = Clock(an_hour_later)


def hurried(interpreter: Interpreter) -> None:
    """Let loops pause after every other turn."""
    budget = interpreter._caller.state.budget
    budget.control[Control.place("clock")] = ctypes.cast(HOURS, ctypes.c_void_p).value


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What loops are asked from now on: whether they pause."""
    told, is_paused = list[bool](), Budget.is_paused

    def ask(self: Budget) -> bool:
        told.append(is_paused(self))
        return told[-1]

    monkeypatch.setattr(Budget, "is_paused", ask)
    return told


@pytest.mark.parametrize("turns", [(40,), (6, 7), (3, 4, 5), (1, 30), (30, 1)], ids=str)
def test_loops_go_on_where_they_paused(
    turns: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = counted(monkeypatch)
    interpreter = Interpreter(nested(*turns), loop_limit=steps_of(turns))
    hurried(interpreter)
    found = invoked_again(interpreter, START)
    assert found[1].tolist() == np.prod(turns)
    assert sum(told) > steps_of(turns) / 4
    scarce = Interpreter(nested(*turns), loop_limit=steps_of(turns) - 1)
    hurried(scarce)
    with pytest.raises(LucioleError, match="in all"):
        invoked(scarce, START)


@pytest.mark.parametrize("loop", loop_support.COMPILED, ids=str)
def test_loops_over_lists_go_on_where_they_paused(
    loop: loop_support.Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = counted(monkeypatch)
    model = loop_support.model_of(loop)
    given = [loop_support.X, np.ones((loop_support.BATCH, loop_support.UNITS), np.float32)]
    interpreter = Interpreter(model)
    hurried(interpreter)
    wanted = litert(to_bytes(model, "tflite"), given)
    for a, b in zip(invoked_again(interpreter, given), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)  # sums of hyperbolic tangents
    assert sum(told) >= 3 * (loop.steps // 3)


def test_times_are_those_of_all_parts_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    told = counted(monkeypatch)
    interpreter = Interpreter(nested(40))
    interpreter.allocate_tensors()
    hurried(interpreter)
    times = interpreter.plan.run_timed()
    assert len(times) == len(interpreter.plan.steps)
    assert sum(told) > 10
    place = interpreter.get_output_details()[1]["index"]
    assert interpreter.get_tensor(place).tolist() == 40


def test_a_loop_that_was_given_up_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    is_paused, asked = Budget.is_paused, itertools.count()

    def interrupted(self: Budget) -> bool:
        if next(asked) == 9:
            raise KeyboardInterrupt
        return is_paused(self)

    monkeypatch.setattr(Budget, "is_paused", interrupted)
    interpreter = Interpreter(nested(6, 7))
    hurried(interpreter)
    with pytest.raises(KeyboardInterrupt):
        invoked(interpreter, START)
    assert invoked(interpreter, START)[1].tolist() == 42


INTERRUPTED = """
import sys, time
import numpy as np
import luciole
interpreter = luciole.Interpreter(sys.argv[1], loop_limit=10**15)
interpreter.allocate_tensors()
assert interpreter.plan.steps[0].native is not None
print("ready", flush=True)
interpreter.invoke()
"""


@pytest.mark.parametrize("turns", [(10**9,), (2, 10**9)], ids=str)
def test_a_compiled_loop_of_minutes_is_interrupted_soon(
    turns: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "loop.circle"
    path.write_bytes(to_bytes(nested(*turns)))
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)  # a tenth of a second where nobody else works
    finally:
        child.kill()
    assert child.returncode != 0
    assert "KeyboardInterrupt" in errors
