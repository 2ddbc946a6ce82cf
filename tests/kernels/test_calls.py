"""The builtin function that runs kernels: what it keeps alive, and who runs meanwhile."""

from __future__ import annotations

import gc
import sys
import threading
import time

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import Pointer


@jit.kernel
def count_up(r: Pointer) -> None:
    """Add 1 to the first number, as often as the second says."""
    for i in range(r[1]):
        r[0] += 1 + (i & r[2])


def table(*records: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray:
    return np.array([(count_up.address, r.ctypes.data) for r in records], np.int64).reshape(-1, 2)


def test_a_call_runs_every_row_and_returns_nothing() -> None:
    records = [np.array([start, 3, 0], np.int64) for start in (0, 10, 20)]
    call = jit.caller(table(*records))
    gc.collect()  # the call keeps its own table
    for run in (1, 2, 3):
        assert call() is None
        assert [int(r[0]) for r in records] == [3 * run, 10 + 3 * run, 20 + 3 * run]


def test_a_call_of_nothing_does_nothing() -> None:
    jit.caller(table())()


def test_calls_do_not_use_up_references_to_none() -> None:
    call = jit.caller(table(np.zeros(3, np.int64)))
    before = sys.getrefcount(None)
    for _ in range(10_000):
        call()
    assert abs(sys.getrefcount(None) - before) < 1000


def test_other_threads_run_meanwhile() -> None:
    record = np.array([0, 1_000_000, 1], np.int64)
    call, seen, done = jit.caller(table(record)), [0], threading.Event()

    def work() -> None:
        while not done.is_set():
            seen[0] += 1
            time.sleep(0.001)

    worker = threading.Thread(target=work)
    worker.start()
    during = 0
    deadline = time.monotonic() + 30
    while during < 3 and time.monotonic() < deadline:
        before = seen[0]
        call()
        during = seen[0] - before
        record[1] *= 2  # until a call is long enough
    done.set()
    worker.join()
    assert during >= 3
