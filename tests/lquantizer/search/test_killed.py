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

from tests.lquantizer.search.killed import main

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[3]
EVALUATIONS = 24
MANY = 40
"""Evaluations that go on for longer than another process takes to begin."""
MIDDLE = 3
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


def search(folder: Path, *cluster: str, count: int = EVALUATIONS, workers: int = 1) -> Any:
    words = (str(folder), str(count), str(workers), *cluster)
    return process("tests.lquantizer.search.killed", *words)


def wait_until_done(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while states(folder).get("done", 0) < count:
        assert time.monotonic() < deadline, "nothing goes on"
        time.sleep(0.02)


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
    with search(tmp_path, count=MANY, workers=2) as found:
        wait_until_done(tmp_path, MIDDLE)
        os.kill(worker(tmp_path), signal.SIGKILL)
        assert found.wait(240) == 0
    assert states(tmp_path) == {"done": MANY}
    assert len({name for (name,) in asked(tmp_path, "select worker from evaluation")}) == 3


def test_a_search_that_is_killed_goes_on_to_the_same_files(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with search(killed) as found:
        wait_until_done(killed, MIDDLE)
        found.kill()
    for folder in (killed, whole):
        assert main(str(folder), str(EVALUATIONS), "1") == 0
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


def test_a_cluster_may_lose_a_worker_and_without_its_scheduler_a_search_says_so_and_goes_on(
    tmp_path: Path,
) -> None:
    pytest.importorskip("distributed")
    whole, folder = tmp_path / "whole", tmp_path / "front"
    with scheduler(tmp_path) as (first, address):
        with search(whole, address) as found:
            wait_until_done(whole, MIDDLE)
            os.kill(worker(whole), signal.SIGKILL)
            assert found.wait(240) == 0
        assert states(whole) == {"done": EVALUATIONS}
        with search(folder, address, "3") as found:
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
    assert main(str(folder), str(EVALUATIONS), "1") == 0
    assert states(folder) == {"done": EVALUATIONS}
