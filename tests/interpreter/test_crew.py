"""Threads that share steps: they meet where they must, sleep when nothing comes, and stop."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter import crew as crew_module
from luciole.interpreter.crew import Crew, Quicker
from luciole.interpreter.errors import InputError
from luciole.interpreter.interpreter import MOST_THREADS
from luciole.interpreter.steps import Run
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.shares import shares
from luciole.kernels.jit import longs
from luciole.kernels.jit.record import Shared
from tests.networks import network

COUNT = 1000


class SumRecord(Shared):
    """Two arrays."""

    x: int
    y: int


@jit.kernel
def add_up(r: SumRecord) -> None:
    """y[i] = x[0] + ... + x[i] for begin <= i < end."""
    x, y = longs(r.x), longs(r.y)
    for i in range(r.begin, r.end):
        total = 0
        for j in range(i + 1):
            total += x[j]
        y[i] = total


def step(x: NDArray[np.int64], y: NDArray[np.int64], shared: bool) -> NativeStep:
    record = SumRecord(begin=0, end=COUNT, x=x.ctypes.data, y=y.ctypes.data)
    split = (lambda threads: shares(record, threads)) if shared else None
    return NativeStep(add_up.address, record.words(), (x, y), split)


@pytest.mark.parametrize("which", [(1,), (1, 1, 1), (0, 1, 0), (1, 0, 0, 1), (0, 0)])
@pytest.mark.parametrize("threads", [2, 3])
def test_steps_see_what_all_threads_computed_before(which: tuple[int, ...], threads: int) -> None:
    arrays = [np.ones(COUNT, np.int64), *(np.zeros(COUNT, np.int64) for _ in which)]
    steps = [step(arrays[i], arrays[i + 1], bool(s)) for i, s in enumerate(which)]
    crew = Crew(threads)
    run = Run(steps, crew)
    for _ in range(3):
        arrays[-1][...] = 0
        run.call()
        wanted = arrays[0]
        for _ in which:
            wanted = np.cumsum(wanted)
        np.testing.assert_array_equal(arrays[-1], wanted)


@pytest.mark.parametrize("threads", [2, 3])
def test_all_threads_have_done_a_stage_before_the_next_begins(threads: int) -> None:
    x, y, z = np.arange(COUNT), np.zeros(COUNT, np.int64), np.zeros(COUNT, np.int64)
    first = SumRecord(begin=0, end=COUNT, x=x.ctypes.data, y=y.ctypes.data)
    second = first.replace(x=y.ctypes.data, y=z.ctypes.data)

    def split(count: int) -> list[Stage]:
        return [*shares(first, count), *reversed(shares(second, count))]

    crew = Crew(threads)
    run = Run([NativeStep(add_up.address, first.words(), (x, y, z), split)], crew)
    shared = crew.runner(run._shared_table(threads))
    for _ in range(20):
        y[...] = z[...] = 0
        shared()
        np.testing.assert_array_equal(z, np.cumsum(np.cumsum(x)))


def test_a_crew_that_fell_asleep_wakes_up_and_ends_with_its_owner() -> None:
    before = threading.active_count()
    x, y = np.arange(COUNT), np.zeros(COUNT, np.int64)
    crew = Crew(2)
    run = Run([step(x, y, True)], crew)
    for _ in range(3):
        run.call()
        np.testing.assert_array_equal(y, np.cumsum(x))
        y[...] = 0
        time.sleep(0.05)
    assert threading.active_count() == before + 1
    del crew, run
    assert threading.active_count() == before


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("least", [1, 4])
def test_shares_cover_the_work_once(count: int, threads: int, least: int) -> None:
    stages = shares(SumRecord(begin=0, end=count, x=0, y=0), threads, least)
    first, end = SumRecord.place("begin"), SumRecord.place("end")
    if not stages:
        assert count < 2 * least or threads == 1
        return
    (found,) = stages
    assert len(found) <= threads
    done = np.concatenate([np.arange(r[first], r[end]) for r in found])
    np.testing.assert_array_equal(done, np.arange(count))
    assert min(r[end] - r[first] for r in found) >= least


def test_the_interpreter_refuses_thousands_of_threads() -> None:
    with pytest.raises(InputError, match=f"is 100000, this machine takes {MOST_THREADS}$"):
        Interpreter(network(), num_threads=100_000)


def test_the_interpreter_refuses_no_threads() -> None:
    with pytest.raises(InputError, match="num_threads is 0, it must be 1 or more"):
        Interpreter(network(), num_threads=0)


NO_ROOM = """
import resource, threading
from luciole.interpreter import crew as crew_module
from luciole.interpreter.crew import Crew, Quicker
Crew(2).close()
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (200 << 20),) * 2)
threading.stack_size(64 << 20)
try:
    Crew(50)
except Exception as error:
    print(type(error).__name__, error)
print(threading.active_count())
"""


def test_the_interpreter_refuses_threads_that_the_system_does_not_start() -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs Linux's /proc")
    command = [sys.executable, "-c", NO_ROOM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    refusal, left = done.stdout.splitlines()
    found = r"InputError num_threads is 50, the system starts [1-4]?[0-9]: can't start new thread"
    assert re.fullmatch(found, refusal), refusal
    assert left == "1"


def test_the_quicker_of_two_ways_is_taken_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew_module, "_TRUSTED", 20)
    delays, calls = [0.0, 0.002], [0, 0]

    def way(place: int) -> None:
        calls[place] += 1
        time.sleep(delays[place])

    quicker = Quicker(lambda: way(0), lambda: way(1))
    for _ in range(20):
        quicker()
    assert calls == [14, 6]
    delays.reverse()
    for _ in range(40):
        quicker()
    assert calls[1] > calls[0], "what became slower is left"
    assert sum(calls) == 60


def test_a_call_that_fails_says_so_and_others_go_on() -> None:
    quicker = Quicker(lambda: 1 // 0, lambda: None)
    for _ in range(6):
        quicker()
    with pytest.raises(ZeroDivisionError):
        quicker()
