"""Processes that are forked: threads begin anew, runs of other threads do not go on."""

from __future__ import annotations

import json
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


EACH = """
import gc, json, tempfile

check(Interpreter(model))
assert threading.active_count() == 1
gc.freeze()  # children need not look through all that is there
for program in json.loads(sys.argv[1]):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            exec(program)
            sys.exit()
        status = os.waitpid(child, 0)[1]
        for file in (out, err):
            file.seek(0)
        print(json.dumps([status, err.read(), out.read().splitlines()]), flush=True)
"""
"""Runs programs in processes of their own, once kernels are read, before any thread begins."""

PROGRAMS: dict[str, str] = {}


@pytest.fixture(scope="module")
def printed() -> dict[str, list[str]]:
    """The lines that programs print, in processes that may hang or be stopped."""
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + EACH]
    command.append(json.dumps(list(PROGRAMS.values())))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    ran = [json.loads(line) for line in done.stdout.splitlines()]
    for status, said, _ in ran:
        assert (status, said) == (0, ""), said
    return {name: lines for name, (_, _, lines) in zip(PROGRAMS, ran, strict=True)}


PROGRAMS["threads"] = """
def of_threads(count, pause):
    interpreter = Interpreter(model, num_threads=count)
    check(interpreter)
    time.sleep(pause)
    def work():
        assert threading.active_count() == 1
        check(interpreter)
        check(interpreter)
        assert threading.active_count() == count
        check(Interpreter(model, num_threads=count))
    in_child(work)
    check(interpreter)
for count, pause in ((1, 0), (2, 0), (3, 0), (2, 0.1), (3, 0.1)):
    of_threads(count, pause)
"""


def test_a_child_runs_the_interpreter_of_its_parent(printed: dict[str, list[str]]) -> None:
    """Its threads spin when the process is forked, or sleep."""
    assert printed["threads"] == ["child", "parent"] * 5


PROGRAMS["grandchildren"] = """
interpreter = Interpreter(model, num_threads=2)
in_child(lambda: in_child(lambda: check(interpreter)))
"""


def test_children_of_children_do_too(printed: dict[str, list[str]]) -> None:
    assert printed["grandchildren"] == ["child", "parent", "child", "parent"]


PROGRAMS["idle children"] = """
interpreter = Interpreter(model, num_threads=2)
check(interpreter)
in_child(lambda: None)
def forget():
    global interpreter
    del interpreter
in_child(forget)
check(interpreter)
"""


def test_children_that_do_not_run_it_end(printed: dict[str, list[str]]) -> None:
    assert printed["idle children"] == ["child", "parent"] * 2


PROGRAMS["another thread"] = """
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


def test_a_child_is_refused_what_ran_in_another_thread(printed: dict[str, list[str]]) -> None:
    line = (
        "the interpreter was running in another thread when the process was forked: "
        "make another one of its model"
    )
    assert printed["another thread"] == [line, line, "child", "parent", "[2.0, 3.0, 4.0, 5.0]"]


PROGRAMS["a run"] = """
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


def test_a_run_that_forks_goes_on_in_both(printed: dict[str, list[str]]) -> None:
    assert printed["a run"] == ["child", "parent"]


PROGRAMS["pools"] = """
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


def test_pools_may_use_what_was_made_before(printed: dict[str, list[str]]) -> None:
    assert printed["pools"] == [str(list(range(8)))]


PROGRAMS["threads that run"] = """
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


def test_threads_that_run_are_not_disturbed_by_forks(printed: dict[str, list[str]]) -> None:
    assert printed["threads that run"] == ["child", "parent"] * 3
