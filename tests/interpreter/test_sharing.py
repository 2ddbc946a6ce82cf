"""Who may share an interpreter: nobody while it runs; models may be shared by anybody."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import BusyError, InputError, Interpreter, NotPickledError
from luciole.interpreter.signature_runner import SignatureRunner
from luciole.ir import Array, LucioleError, Signature
from luciole.kernels.core import custom
from tests.interpreter.sharing_support import (
    SIZE,
    Held,
    Meddler,
    exponentials,
    in_threads,
    model_with,
)

IN_USE = "the interpreter is running already, in another thread or around this call: each thread, "


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(custom, "FUNCTIONS", {})


@pytest.fixture(params=[1, 2])
def held(request: pytest.FixtureRequest) -> Iterator[Held]:
    made = Held(num_threads=request.param)
    yield made
    made.end()


CALLS: dict[str, Callable[[Held], object]] = {
    "invoke": lambda h: h.interpreter.invoke(),
    "run": lambda h: h.interpreter.run(np.zeros(4, np.float32)),
    "set_tensor": lambda h: h.interpreter.set_tensor(0, np.zeros(4, np.float32)),
    "get_tensor": lambda h: h.interpreter.get_tensor(3),
    "get_tensor of one between": lambda h: h.interpreter.get_tensor(1),
    "resize": lambda h: h.interpreter.resize_tensor_input(0, (5,)),
    "reset": lambda h: h.interpreter.reset_all_variables(),
    "reset before": lambda h: h.interpreter.reset_before_run(),
    "signature": lambda h: h.interpreter.get_signature_runner("main")(x=np.zeros(4, np.float32)),
    "other graph": lambda h: h.other(x=np.zeros(4, np.float32)),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_interpreter_refuses_other_threads_while_it_runs(held: Held, call: str) -> None:
    with pytest.raises(BusyError, match=f"^{IN_USE}observer and custom operator needs one of"):
        CALLS[call](held)
    held.interpreter.allocate_tensors()  # nothing is to be done
    assert held.release() == [2, 3, 4, 5]
    CALLS[call](held)


def test_the_end_of_a_run_that_failed_is_an_end() -> None:
    @luciole.custom_operator("Fail")
    def fail(x: Array) -> Array:
        raise ValueError("no")

    interpreter = Interpreter(model_with("Fail"))
    for _ in range(2):
        with pytest.raises(LucioleError, match="raised ValueError: no"):
            interpreter.run(np.zeros(4, np.float32))
        with pytest.raises(LucioleError, match="raised ValueError: no"):
            interpreter.invoke()


def test_a_custom_operator_s_function_is_refused_the_interpreter_it_runs_in() -> None:
    @luciole.custom_operator("Again")
    def again(x: Array) -> Array:
        interpreter.invoke()
        return x

    interpreter = Interpreter(model_with("Again"))
    with pytest.raises(LucioleError, match=f"raised BusyError: {IN_USE}"):
        interpreter.run(np.zeros(4, np.float32))


def test_observers_may_read_and_write_but_not_run() -> None:
    interpreter = Interpreter(exponentials(), keep_tensors=True)
    x = np.zeros(8, np.float32)
    reader = Meddler(lambda: interpreter.get_tensor(1).tolist())
    interpreter.attach_observer(reader)
    interpreter.attach_observer(Meddler(lambda: interpreter.set_tensor(0, x + 1)))
    interpreter.run(x)
    assert reader.found == [[1.0] * 8] * 3
    assert interpreter.get_tensor(0).tolist() == [1.0] * 8


def test_observers_are_refused_another_run() -> None:
    interpreter = Interpreter(exponentials())
    x = np.zeros(8, np.float32)
    calls = (interpreter.invoke, lambda: interpreter.run(x))
    for watcher in map(Meddler, calls):
        interpreter.attach_observer(watcher)
        with pytest.raises(BusyError, match=IN_USE):
            interpreter.run(x)
        interpreter.detach_observer(watcher)
    interpreter.run(x)


def test_observers_are_refused_tensors_that_made_room() -> None:
    interpreter = Interpreter(exponentials(5))
    interpreter.attach_observer(Meddler(lambda: interpreter.get_tensor(1)))
    wanted = "tensor 'y0' makes room for others during a run: read it afterwards, or give keep_"
    with pytest.raises(InputError, match=wanted):
        interpreter.run(np.zeros(8, np.float32))


def test_an_observer_may_leave_while_it_watches() -> None:
    interpreter = Interpreter(exponentials())
    second = Meddler(lambda: None)
    first = Meddler(lambda: interpreter.detach_observer(first) if len(first.found) == 1 else None)
    interpreter.attach_observer(first)
    interpreter.attach_observer(second)
    interpreter.run(np.zeros(8, np.float32))
    assert (len(first.found), len(second.found)) == (3, 3)


def test_every_thread_sees_its_own_results_or_a_refusal() -> None:
    interpreter = Interpreter(exponentials(1, SIZE), num_threads=2)
    wrong: list[str] = []
    done = [0, 0]

    def work(number: int) -> None:
        x = np.full(SIZE, number, np.float32)
        wanted = np.exp(np.float32(number))
        while done[number] < 30:
            try:
                found = interpreter.run(x)["y0"]
            except BusyError:
                continue
            done[number] += 1
            if not np.allclose(found, wanted, rtol=1e-6):
                wrong.append(f"{number}: {np.unique(found)}")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        in_threads(work)
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


def test_threads_may_share_a_model(tmp_path: Any) -> None:
    """Each makes an interpreter of its own, in a process that has compiled nothing yet."""
    program = (
        "import threading, numpy as np, luciole\n"
        "from tests.interpreter.sharing_support import exponentials, in_threads\n"
        "model = exponentials(3)\n"
        "def work(number):\n"
        "    for _ in range(5):\n"
        "        x = np.full(8, -number, np.float32)\n"
        "        found = luciole.Interpreter(model, num_threads=2).run(x)['y2']\n"
        "        np.testing.assert_allclose(found, np.exp(np.exp(np.exp(x))), rtol=1e-5)\n"
        "in_threads(work)\n"
    )
    environment = {"LUCIOLE_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": "."}
    command = [sys.executable, "-c", program]
    subprocess.run(command, env=environment, check=True, timeout=300)


def test_an_interpreter_may_be_handed_over() -> None:
    interpreter = Interpreter(exponentials(1, SIZE), num_threads=2)
    x = np.zeros(SIZE, np.float32)
    interpreter.run(x)
    found: list[Array] = []
    thread = threading.Thread(target=lambda: found.append(interpreter.run(x)["y0"]))
    thread.start()
    thread.join()
    assert found[0].tolist() == [1.0] * SIZE


INTERRUPTED = """
import signal, numpy as np
from tests.interpreter.sharing_support import SIZE, exponentials
from luciole.interpreter import Interpreter
class Interrupt(Exception): pass
def interrupt(*_): raise Interrupt
x = np.zeros(SIZE // 20, np.float32)
signal.signal(signal.SIGALRM, interrupt)
for threads in (1, 2):
    interpreter = Interpreter(exponentials(2, SIZE // 20), num_threads=threads)
    wanted = interpreter.run(x)["y1"].tolist()
    caught = 0
    while caught < 300:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + caught % 7))
            while True:
                interpreter.invoke()
        except Interrupt:
            caught += 1
    assert interpreter.run(x)["y1"].tolist() == wanted
"""


def test_interrupts_leave_an_interpreter_that_runs() -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=300)


def test_an_interpreter_refuses_to_be_pickled_or_copied() -> None:
    interpreter = luciole.Interpreter(exponentials(), num_threads=2)
    interpreter.allocate_tensors()
    for what, ways in {
        interpreter: (pickle.dumps, copy.copy, copy.deepcopy),
        interpreter.plan: (pickle.dumps, copy.copy, copy.deepcopy),
        runner(interpreter): (pickle.dumps, copy.deepcopy),
    }.items():
        for way in ways:
            wanted = "(Interpreter|Plan) can be neither pickled nor copied: pickle the model, and"
            with pytest.raises(NotPickledError, match=wanted):
                way(what)


def runner(interpreter: Interpreter) -> SignatureRunner:
    """What calls an interpreter by names."""
    graph = interpreter.graph
    ends = [("x", graph.inputs[0])], [("y", graph.outputs[0])]
    interpreter.model.signatures.append(Signature("serve", graph, *ends))
    return interpreter.get_signature_runner("serve")
