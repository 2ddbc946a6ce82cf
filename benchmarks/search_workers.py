"""``python -m benchmarks.search_workers --model MODEL --data DATA``: how much faster short fits of
whole networks are in several processes than in one.

The same candidates are fitted by ``luciole search --workers`` 1 and 2 in turn, round by round, once
every worker has begun. Give it as many free cores as it is to have workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.lquantizer.judging.records import evenly
from luciole.lquantizer.search.begin import split
from luciole.lquantizer.search.evaluator import Materials
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.runners import Task
from luciole.lquantizer.search.space import Space
from luciole.lquantizer.search.workers import Workers
from luciole.tools.data.load import load_data

CHOICES = ("levels:w1a4", "levels:w2a2", "levels:w2a4", "levels:w3a4")
WAY = "output-aware, refit 0.5"


def tasks_for(space: Space, count: int) -> list[Task]:
    """Draw candidates, always the same."""
    chance = np.random.default_rng(0)
    found: list[Task] = []
    for _ in range(count):
        drawn = chance.choice(CHOICES, len(space.genes))
        pairs = zip(space.genes, map(str, drawn), strict=True)
        candidate = tuple(o if o in gene.options else gene.options[-1] for gene, o in pairs)
        ways = [WAY] * len(space.learned(candidate))
        found.append({"stage": "shortened", "candidate": candidate, "ways": ways})
    return found


def begun(count: int, given: Materials, task: Task) -> Workers:
    """Start workers, and wait until each has done a task."""
    workers, seen = Workers(count, given), set[str]()
    while len(seen) < count:
        seen |= {one for _, one in done(workers, [task] * count)}
    return workers


def done(workers: Workers, tasks: Sequence[Task]) -> list[tuple[float, str]]:
    """Do tasks; returns the seconds of each, and who did it."""
    for number, task in enumerate(tasks):
        workers.submit(str(number), task)
    outcomes = [workers.next() for _ in tasks]
    for one in outcomes:
        assert one.error is None, one.error
    return [(one.seconds, one.worker) for one in outcomes]


def main() -> None:
    """Print a line for each round, and the median."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, help="unlabelled records")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=8, help="for each worker in a round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    model = luciole.load(arguments.model)
    data = load_data(arguments.data, model.graph)
    space = Space.of(model.graph)
    options = SearchOptions()
    parts = split(model, data.records, options)
    fitted = evenly(parts.learned, options.calibration)
    content = to_bytes(model)
    given = Materials(content, from_bytes, to_bytes, fitted, parts.judges, space, timed=False)
    tasks = tasks_for(space, arguments.tasks * arguments.workers)
    crews = [begun(count, given, tasks[0]) for count in (1, arguments.workers)]
    gains = []
    for _ in range(arguments.rounds):
        took = []
        for crew in crews:
            start = time.perf_counter()
            seconds = [one for one, _ in done(crew, tasks)]
            took.append(time.perf_counter() - start)
        gains.append(took[0] / took[1])
        fit = statistics.median(seconds)
        print(f"{took[0]:.1f} s, {took[1]:.1f} s: {gains[-1]:.2f} times; a fit {fit:.2f} s")
    load = os.getloadavg()[0]
    print(f"{arguments.workers} workers: {statistics.median(gains):.2f} times one; load {load:.1f}")
    for crew in crews:
        crew.close()


if __name__ == "__main__":
    main()
