"""Workers, clusters and searches that are killed in the middle: nothing is lost, nothing fails."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[3]
EVALUATIONS = 13
MIDDLE = 5
"""Evaluations that are done when something is killed."""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}


def asked(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Ask a storage while another process writes it."""
    try:
        with sqlite3.connect(f"file:{folder / 'search.db'}?mode=ro", uri=True) as db:
            return db.execute(statement).fetchall()
    except sqlite3.Error:
        return []


def states(folder: Path) -> dict[str, int]:
    return dict(
        asked(
            folder,
            "select state, count(*) from evaluation where stage='shortened' group by state",
        )
    )


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(
        command, cwd=HERE, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as found:
        try:
            yield found
        finally:
            found.kill()


def search(folder: Path, workers: int = 1, *cluster: str) -> Any:
    words = (str(folder), str(EVALUATIONS), str(workers), *cluster)
    return process("tests.lquantizer.search.killed", *words)


def wait_until_done(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while states(folder).get("done", 0) < count:
        assert time.monotonic() < deadline, "nothing goes on"
        time.sleep(0.002)


def worker(folder: Path) -> int:
    """Find a process that evaluated the last."""
    ((found,),) = asked(
        folder,
        "select worker from evaluation where stage='shortened' and state='done' "
        "order by number desc limit 1",
    )
    return int(str(found).rpartition(":")[2])


def front(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("front-*")}


def test_a_local_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    with search(tmp_path, 2) as found:
        wait_until_done(tmp_path, MIDDLE)
        os.kill(worker(tmp_path), signal.SIGKILL)
        assert found.wait(240) == 0
    assert states(tmp_path) == {"done": EVALUATIONS}
    assert len({name for (name,) in asked(tmp_path, "select worker from evaluation")}) == 3


def test_a_search_that_is_killed_goes_on_to_the_same_files(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with search(killed) as found:
        wait_until_done(killed, MIDDLE)
        found.kill()
    for folder in (killed, whole):
        with search(folder) as found:
            assert found.wait(240) == 0
    assert front(killed) == front(whole)
    (attempts,) = asked(killed, "select sum(attempts) from evaluation where stage='shortened'")
    assert attempts[0] <= EVALUATIONS + 1


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a Dask scheduler and two workers without anybody that starts them again."""
    file = folder / "scheduler.json"
    where = ("--scheduler-file", str(file), "--no-dashboard")
    one = ("distributed.cli.dask_worker", *where, "--no-nanny", "--nthreads", "1")
    with (
        process("distributed.cli.dask_scheduler", "--port", "0", *where) as first,
        process(*one),
        process(*one),
    ):
        deadline = time.monotonic() + 120
        while not file.exists():
            assert time.monotonic() < deadline, "no scheduler begins"
            time.sleep(0.05)
        from json import loads

        yield first, loads(file.read_text())["address"]


def test_a_dask_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with scheduler(tmp_path) as (_, address), search(tmp_path / "front", 1, address) as found:
        wait_until_done(tmp_path / "front", MIDDLE)
        os.kill(worker(tmp_path / "front"), signal.SIGKILL)
        assert found.wait(240) == 0
    assert states(tmp_path / "front") == {"done": EVALUATIONS}


def test_without_its_scheduler_a_search_says_so_and_another_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    folder = tmp_path / "front"
    with scheduler(tmp_path) as (first, address), search(folder, 1, address, "3") as found:
        wait_until_done(folder, MIDDLE)
        before = states(folder)["done"]
        first.send_signal(signal.SIGKILL)
        _, errors = found.communicate(timeout=240)
        assert found.returncode == 1
    last = errors.splitlines()[-1]
    assert last == f"the scheduler at {address} is gone; what was finished is kept"
    left = states(folder)
    assert left["done"] >= before
    assert "failed" not in left
    with search(folder) as found:
        assert found.wait(240) == 0
    assert states(folder) == {"done": EVALUATIONS}
