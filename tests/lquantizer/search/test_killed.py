"""Workers and schedulers that are killed in the middle of a search: nothing is lost, nothing fails.
A search that is killed itself is in test_search.py.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any

import pytest

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.search import cluster
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult
from tests.lquantizer.search.metric_support import check_files, numbers, source
from tests.networks import network, random

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[3]
X = random(1, 40, 24)
SIZES = (24, 20, 16, 16, 4)
OPTIONS = ("levels:w2a4", "dynamic:int8", "float")
EVALUATIONS = 24
MANY = 40
"""Evaluations that go on for longer than another process takes to begin."""
MIDDLE = 3
"""Evaluations that are done when something is killed."""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}


def asked(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Ask a storage while another thread writes it."""
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


def wait_until_done(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while states(folder).get("done", 0) < count:
        assert time.monotonic() < deadline, "nothing goes on"
        time.sleep(0.02)


def kill_worker(folder: Path) -> None:
    """Kill the process that evaluated the last."""
    wait_until_done(folder, MIDDLE)
    ((found,),) = asked(
        folder,
        "select worker from evaluation where stage='shortened' and state='done' "
        "order by number desc limit 1",
    )
    os.kill(int(str(found).rpartition(":")[2]), signal.SIGKILL)


def searched(
    folder: Path,
    count: int = EVALUATIONS,
    metric: str | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    **helpers: Any,
) -> SearchResult:
    """Search a small network while another thread does something."""
    options = SearchOptions(evaluations=count, options=OPTIONS, files=2, few=40, **helpers)
    with ThreadPoolExecutor(1) as pool:
        doing = pool.submit(meanwhile)
        try:
            return luciole.search(
                network(SIZES), X, folder, options, metric=metric, say=lambda line: None
            )
        finally:
            doing.result()


def test_a_local_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    """All of them load the metric, as the one does that takes the killed one's place."""
    folder, metric = tmp_path / "front", source(tmp_path)
    found = searched(folder, MANY, metric, lambda: kill_worker(folder), workers=2)
    assert states(folder) == {"done": MANY}
    assert len({name for (name,) in asked(folder, "select worker from evaluation")}) == 3
    check_files(found, network(SIZES), X, numbers(network(SIZES), X))


@contextmanager
def process(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module in a process of its own, which ends with the block."""
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, cwd=HERE, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as found:
        try:
            yield found
        finally:
            found.kill()


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
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
        yield first, loads(file.read_text())["address"]


def test_a_cluster_may_lose_a_worker_and_without_its_scheduler_a_search_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    folder, done = tmp_path / "front", list[int]()
    with scheduler(tmp_path) as (first, address):

        def kill() -> None:
            kill_worker(folder)
            wait_until_done(folder, 4 * MIDDLE)
            monkeypatch.setattr(cluster, "_PATIENCE", 3)
            done.append(states(folder)["done"])
            first.send_signal(signal.SIGKILL)

        told = f"^the scheduler at {address} is gone; what was finished is kept$"
        with pytest.raises(QuantizeError, match=told):
            searched(folder, meanwhile=kill, cluster=address)
    left = states(folder)
    assert left["done"] >= done[0]
    assert "failed" not in left
    searched(folder)
    assert states(folder) == {"done": EVALUATIONS}
