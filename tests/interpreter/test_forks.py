"""Processes that are forked: threads begin anew, runs of other threads do not go on."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRELUDE = """
import os, sys, threading, time
import numpy as np
import luciole
from luciole.interpreter import BusyError, Interpreter, Observer
from tests.interpreter.sharing_support import SIZE, Held, Meddler, exponentials

x = np.zeros(SIZE, np.float32)
model = exponentials(2, SIZE)
wanted = np.exp(np.exp(x[:1]))

def check(interpreter):
    found = interpreter.run(x)["y1"]
    np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), rtol=1e-6)

def in_child(work):
    # as a program that ends as others do
    child = os.fork()
    if child == 0:
        work()
        print("child", flush=True)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    print("parent", flush=True)
"""


def run(program: str) -> list[str]:
    """The lines that a program prints, in a process that may hang or be stopped."""
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("pause", [0, 0.1])
def test_a_child_runs_the_interpreter_of_its_parent(pause: float) -> None:
    """Its threads spin when the process is forked, or sleep."""
    program = f"""
def of_threads(count):
    interpreter = Interpreter(model, num_threads=count)
    check(interpreter)
    time.sleep({pause})
    def work():
        assert threading.active_count() == 1
        check(interpreter)
        check(interpreter)
        assert threading.active_count() == count
        check(Interpreter(model, num_threads=count))
    in_child(work)
    check(interpreter)
for count in (1, 2, 3):
    of_threads(count)
"""
    assert run(program) == ["child", "parent"] * 3


def test_children_of_children_do_too() -> None:
    program = """
interpreter = Interpreter(model, num_threads=2)
in_child(lambda: in_child(lambda: check(interpreter)))
"""
    assert run(program) == ["child", "parent", "child", "parent"]


def test_children_that_do_not_run_it_end() -> None:
    program = """
interpreter = Interpreter(model, num_threads=2)
check(interpreter)
in_child(lambda: None)
def forget():
    global interpreter
    del interpreter
in_child(forget)
check(interpreter)
"""
    assert run(program) == ["child", "parent"] * 2


def test_a_child_is_refused_what_ran_in_another_thread() -> None:
    program = """
held = Held(num_threads=2)
def work():
    for call in (held.interpreter.invoke, lambda: held.interpreter.get_tensor(0)):
        try:
            call()
        except BusyError as error:
            print(error)
    check(Interpreter(model, num_threads=2))
in_child(work)
print(held.release())
"""
    line = (
        "the interpreter was running in another thread when the process was forked: "
        "make another one of its model"
    )
    assert run(program) == [line, line, "child", "parent", "[2.0, 3.0, 4.0, 5.0]"]


def test_a_run_that_forks_goes_on_in_both() -> None:
    program = """
interpreter = Interpreter(model, num_threads=2)
watcher = Meddler(lambda: os.fork() if len(watcher.found) == 0 else None)
interpreter.attach_observer(watcher)
check(interpreter)
child = watcher.found[0]
if child:
    assert os.waitpid(child, 0)[1] == 0
check(interpreter)
interpreter.detach_observer(watcher)
check(interpreter)
print("parent" if child else "child", flush=True)
"""
    assert run(program) == ["child", "parent"]


def test_pools_may_use_what_was_made_before() -> None:
    program = """
import multiprocessing
interpreter = Interpreter(model, num_threads=2)
check(interpreter)
def work(number):
    check(interpreter)
    return number
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(8)))
check(interpreter)
"""
    assert run(program) == [str(list(range(8)))]


def test_threads_that_run_are_not_disturbed_by_forks() -> None:
    program = """
interpreter, other = (Interpreter(model, num_threads=2) for _ in range(2))
check(interpreter), check(other)
stop = threading.Event()
def go_on():
    while not stop.is_set():
        check(other)
thread = threading.Thread(target=go_on)
thread.start()
for _ in range(3):
    in_child(lambda: check(interpreter))
stop.set()
thread.join()
"""
    assert run(program) == ["child", "parent"] * 3
