"""``python -m benchmarks.search_scale``: how busy a search keeps many workers, and how long asking
for a candidate and telling its result take.

The search, its storage and its evolution are the real ones; workers only wait, in a time of their
own: log-normal seconds, and a worker may die now and then. What the search itself takes of a
processor is measured and passes in that time as well, plus what Dask takes for a task. ``--dask``
waits on threads of a Dask cluster of this machine in real time instead.
"""

from __future__ import annotations

import argparse
import heapq
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from luciole.lquantizer.assignment.layer_format import Levels, parse
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.evaluate import Alone, Figures
from luciole.lquantizer.search.goal import Budget, Goal
from luciole.lquantizer.search.runners import Outcome, Runner, Task
from luciole.lquantizer.search.search import Search
from luciole.lquantizer.search.space import OPTIONS, Gene, Space
from luciole.lquantizer.search.storage import Storage

Times = list[tuple[float, float]]
"""Of each evaluation when it was given, and the seconds that it took."""
_FITTED = 4.0
"""How many times as long as a shortened fit a full one takes."""
_START = 6.0
"""Seconds until a worker has begun."""
_NOISE = 0.15
"""How far a sum of losses is from a network's, as the deviation of its logarithm."""


def stand_in(layers: int) -> tuple[Space, list[Alone]]:
    """Make up a network: layers of all sizes that lose by their bits as measured ones do."""
    chance, alone, genes = np.random.default_rng(0), [], []
    for number in range(layers):
        weights, weak = int(np.exp(chance.uniform(6, 11))), np.exp(chance.normal(0, 1))
        genes.append(Gene((f"layer{number}",), OPTIONS, measured=(f"layer{number}",)))
        for option in OPTIONS:
            wide = float(np.exp(chance.normal(0, 0.2)))
            format = parse(option)
            bits, inputs = 8, 8
            if isinstance(format, Levels):
                bits, inputs = format.weights, format.inputs or 8
            loss = weak * wide * (4.0**-bits + 4.0**-inputs) if option != "float" else 0.0
            size = weights * (bits - 32) // 8 if option != "float" else 0
            alone.append(Alone(genes[-1].layers[0], option, size, float(loss), 0.0, "plain"))
    return Space(tuple(genes)), alone


@dataclass(frozen=True)
class Evaluate:
    """Says what a candidate is: the sum of its layers, and noise that is always the same."""

    known: dict[tuple[str, str], Alone]
    seconds: float = 0.0
    """To wait for it, on a cluster."""

    def __call__(self) -> Callable[[Task], Any]:
        """Begin on a worker."""
        return self.work

    def work(self, task: Task) -> dict[str, Any]:
        """Evaluate a task, at the seconds' leisure."""
        time.sleep(self.seconds * float(self.chance(task).lognormal(0, 0.35)))
        return self.figures(task)

    def chance(self, task: Task) -> np.random.Generator:
        """Draw always the same for a task."""
        return np.random.default_rng(zlib.crc32(" ".join(task["candidate"]).encode()))

    def figures(self, task: Task) -> dict[str, Any]:
        """Evaluate a task."""
        chosen = [self.known[f"layer{n}", option] for n, option in enumerate(task["candidate"])]
        loss = sum(one.loss for one in chosen) * float(np.exp(self.chance(task).normal(0, _NOISE)))
        size = sum(one.bytes for one in chosen)
        return {"figures": asdict(Figures(10**8 + size, loss, None)), "model": b""}


@dataclass
class Simulated:
    """A runner whose workers only wait, in a time of their own."""

    capacity: int
    evaluate: Evaluate
    seconds: float
    dispatch: float
    deaths: float
    """Of a worker in an hour."""
    now: float = 0.0
    busy: float = 0.0
    ended: float = 0.0
    own: list[float] = field(default_factory=list)
    """Seconds that the search took from one result to the next task: told, asked, all stored."""

    def __post_init__(self) -> None:
        self._chance = np.random.default_rng(1)
        self._free = [(_START, worker) for worker in range(self.capacity)]
        self._open: list[tuple[float, str, int, Task]] = []
        self._since = time.process_time()

    def submit(self, key: str, task: Task) -> None:
        """Give a task to the worker that waits longest."""
        self.own.append(self._pass())
        self.now += self.dispatch
        ready, worker = heapq.heappop(self._free)
        begun = max(self.now, ready)
        length = self.seconds * float(self._chance.lognormal(0, 0.35))
        length *= _FITTED if task["stage"] == "fitted" else 1.0
        while self._chance.random() < self.deaths * length / 3600:
            begun += length / 2 + _START
        heapq.heappush(self._open, (begun + length, key, worker, task))
        if task["stage"] == "shortened":
            self.busy, self.ended = self.busy + length, max(self.ended, begun + length)

    def next(self) -> Outcome:
        """Let time pass until a task ends."""
        self._pass()
        end, key, worker, task = heapq.heappop(self._open)
        self.now = max(self.now, end)
        heapq.heappush(self._free, (self.now, worker))
        self._since = time.process_time()
        return Outcome(key, self.evaluate.figures(task), None, self.seconds, str(worker))

    def close(self) -> None:
        """End."""

    def _pass(self) -> float:
        took = time.process_time() - self._since
        self.now += took
        self._since += took
        return took


def searched(runner: Runner, space: Space, alone: Sequence[Alone], evaluations: int) -> Times:
    """Search with a runner; returns the times that were stored of the evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(Path(folder) / "search.db", {})
        for one in alone:
            storage.add_alone(one)
        budget = Budget(evaluations, None, 12)
        search = Search(space, Goal(), storage, 10**8, 0.0, budget=budget, say=lambda line: None)
        found = search.run(runner)
        assert len(found.evaluated) == evaluations, "all were evaluated"
        with sqlite3.connect(storage.path) as db:
            return db.execute(
                "select begun, seconds from evaluation where stage='shortened'"
            ).fetchall()


def simulate(arguments: argparse.Namespace) -> None:
    """Print a line for each number of workers."""
    space, alone = stand_in(arguments.layers)
    known = {(one.layer, one.option): one for one in alone}
    print("workers  evaluations  minutes  speed-up    busy  search's own: median, 99 %, most")
    for workers in arguments.workers:
        count = workers * arguments.each
        how = (arguments.seconds, arguments.dispatch / 1000, arguments.deaths)
        runner = Simulated(workers, Evaluate(known), *how)
        searched(runner, space, alone, count)
        own = 1000 * np.array(runner.own[workers:])
        share = runner.busy / runner.ended / workers
        print(
            f"{workers:7}  {count:11}  {runner.ended / 60:7.1f}  {workers * share:8.1f}  "
            f"{share:6.1%}  {np.median(own):.2f}, {np.quantile(own, 0.99):.2f}, {own.max():.1f} ms",
            flush=True,
        )


def on_dask(arguments: argparse.Namespace) -> None:
    """Print how busy threads of a real cluster are kept."""
    from distributed import LocalCluster

    space, alone = stand_in(arguments.layers)
    known = {(one.layer, one.option): one for one in alone}
    for workers in arguments.workers:
        where = {"n_workers": 1, "threads_per_worker": workers, "dashboard_address": None}
        with LocalCluster(processes=False, **where) as local:  # type: ignore[no-untyped-call]  # Dask has no types
            evaluate, count = Evaluate(known, arguments.seconds), workers * arguments.each
            runner = Cluster(local.scheduler_address, evaluate)
            times = searched(runner, space, alone, count)
            runner.close()
        took = max(b + s for b, s in times) - min(b for b, _ in times)
        busy = sum(s for _, s in times) / took / workers
        print(f"{workers} threads of Dask: {count} evaluations in {took:.1f} s, {busy:.1%} busy")


def main() -> None:
    """Print how busy so many workers are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 24, 100, 200, 300, 1000])
    parser.add_argument("--each", type=int, default=20, help="evaluations for each worker")
    parser.add_argument("--seconds", type=float, default=12.0, help="of an evaluation")
    parser.add_argument("--dispatch", type=float, default=3.4, help="ms that Dask takes for a task")
    parser.add_argument("--deaths", type=float, default=0.0, help="of each worker in an hour")
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--dask", action="store_true", help="wait in real time on a Dask cluster")
    arguments = parser.parse_args()
    (on_dask if arguments.dask else simulate)(arguments)


if __name__ == "__main__":
    main()
