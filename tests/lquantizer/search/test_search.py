"""A whole search on a small network: what it finds, that it goes on, and that workers may die."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.layer_format import parse
from luciole.lquantizer.search import cluster
from luciole.lquantizer.search.additive import Sum, bisected
from luciole.lquantizer.search.cluster import Cluster
from luciole.lquantizer.search.evaluate import Alone
from luciole.lquantizer.search.goal import Budget, Goal
from luciole.lquantizer.search.networks import Searched, candidate_of, key_of
from luciole.lquantizer.search.nsga2 import fronts, hypervolume, spread
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult
from luciole.lquantizer.search.runners import InProcess, Outcome, Runner, Task
from luciole.lquantizer.search.search import Search
from luciole.lquantizer.search.space import (
    LEARNED_OPTIONS,
    UNCHANGED,
    UNIFORM_OPTIONS,
    Gene,
    Space,
)
from luciole.lquantizer.search.storage import Storage
from luciole.lquantizer.search.tasks import drive
from luciole.lquantizer.search.workers import Workers
from tests.lquantizer.search.squares import Begin
from tests.networks import network, random

X = random(1, 60, 64)
OPTIONS = ("levels:w1a2", "levels:w2a4", "dynamic:int8", "float")
SIZES = (64, 12, 8, 4)


def options(**changes: object) -> SearchOptions:
    settings = {"evaluations": 10, "options": OPTIONS, "files": 3, "few": 20, **changes}
    return SearchOptions(**settings)  # type: ignore[arg-type]  # the names are fields


def searched(folder: Path, **changes: object) -> SearchResult:
    return luciole.search(network(SIZES), X, folder, options(**changes), say=lambda line: None)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    folder = tmp_path_factory.mktemp("front")
    return folder, searched(folder)


def test_the_front_is_files_that_none_beats(found: tuple[Path, SearchResult]) -> None:
    folder, result = found
    assert len(result.evaluated) == 10
    assert {path.name for path in folder.glob("front-*.circle")} == {
        file.path.name for file in result.front
    }
    values = np.array([(file.found.bytes, file.found.loss) for file in result.front])
    assert len(fronts(values)) == 1
    for file in result.front:
        assert file.path.stat().st_size == file.found.bytes


def test_for_each_uniform_network_there_is_a_file_no_larger_and_no_worse(
    found: tuple[Path, SearchResult],
) -> None:
    _, result = found
    assert result.uniform
    for one in result.uniform.values():
        no_larger = [file.found for file in result.front if file.found.bytes <= one.bytes]
        assert min(file.loss for file in no_larger) <= one.loss


def test_a_file_loses_what_is_said(found: tuple[Path, SearchResult]) -> None:
    _, result = found
    order = range(4, 60, 5)
    floats = luciole.Interpreter(network(SIZES))
    wanted = np.concatenate([floats.run({"x": X[i : i + 1]})["fc3"] for i in order])
    for file in result.front:
        model = luciole.Interpreter(str(file.path))
        name = luciole.load(file.path).graph.outputs[0].name
        answers = np.concatenate([model.run({"x": X[i : i + 1]})[name] for i in order])
        loss = np.square(answers - wanted).mean() / wanted.var()
        assert file.found.loss == pytest.approx(loss, rel=1e-3, abs=1e-9)


def test_a_config_makes_the_same_choices_again(found: tuple[Path, SearchResult]) -> None:
    _, result = found
    file = result.front[0]
    again = luciole.quantize(network(SIZES), X, config=json.loads(file.config.read_text()))
    assert {layer.name: layer.format for layer in again.report.layers} == file.options


def test_a_search_that_was_killed_goes_on_to_the_same_front(
    found: tuple[Path, SearchResult], tmp_path: Path
) -> None:
    """A process is killed in the middle; the same call in another one finds what the first would
    have, and does again at most what was under way.
    """
    child = os.fork()
    if child == 0:
        searched(tmp_path)
        os._exit(0)
    storage = tmp_path / "search.db"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and count(storage) < 5:
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    again = searched(tmp_path)
    folder, whole = found
    assert front(tmp_path) == front(folder)
    assert [f.found for f in again.front] == [f.found for f in whole.front]
    assert [one.candidate for one in again.evaluated] == [one.candidate for one in whole.evaluated]
    assert attempts(storage) <= 11


def front(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("front-*")}


def count(storage: Path) -> int:
    import sqlite3

    try:
        with sqlite3.connect(f"file:{storage}?mode=ro", uri=True) as db:
            return int(
                db.execute("select count(*) from evaluation where state='done'").fetchone()[0]
            )
    except sqlite3.Error:
        return 0


def attempts(storage: Path) -> int:
    import sqlite3

    with sqlite3.connect(storage) as db:
        return int(
            db.execute("select sum(attempts) from evaluation where stage='shortened'").fetchone()[0]
        )


def test_a_folder_refuses_another_search(found: tuple[Path, SearchResult]) -> None:
    folder, _ = found
    with pytest.raises(QuantizeError, match="is of a search with other settings"):
        searched(folder, seed=1)


def test_bounds_are_kept(tmp_path: Path) -> None:
    few = OPTIONS[1:]
    result = searched(tmp_path, options=few, max_size=2700, evaluations=6)
    assert result.front
    assert all(file.found.bytes <= 2700 for file in result.front)
    wider = searched(tmp_path, options=few, max_size=5000, evaluations=9)
    assert wider.evaluated[:6] == result.evaluated
    assert max(one.bytes for one in wider.evaluated) > 2700
    assert all(file.found.bytes <= 5000 for file in wider.front)


def test_search_refuses_a_size_below_that_of_the_weights(tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="max_size is 10 bytes: the weights alone take at"):
        searched(tmp_path, max_size=10)
    assert not (tmp_path / "search.db").exists(), "nothing was evaluated"


def test_of_a_front_the_files_are_kept_that_dominate_most(tmp_path: Path) -> None:
    """Layers cost bytes and losses that add up, and large files hardly lose less."""
    genes = tuple(
        Gene((name,), ("levels:w1a1", "levels:w2a2", "levels:w4a8", "float"), False, (name,))
        for name in "abc"
    )
    storage = Storage(tmp_path / "search.db", {})
    costs = {
        "levels:w1a1": (-9000, 0.3),
        "levels:w2a2": (-8500, 0.1),
        "levels:w4a8": (-8000, 1e-4),
        "float": (0, 0.0),
    }
    for n, name in enumerate("abc"):
        for option, (size, loss) in costs.items():
            storage.add_alone(Alone(name, option, size * (n + 1), loss / (n + 1), 0.0, ""))

    def work(task: Task) -> dict[str, object]:
        chosen = list(enumerate(map(costs.__getitem__, task["candidate"]), 1))
        size = 60_000 + sum(n * one for n, (one, _) in chosen)
        loss = sum(one / n for n, (_, one) in chosen)
        return {"figures": {"bytes": size, "loss": loss, "agreement": None}, "model": b""}

    budget = Budget(evaluations=60, files=6)
    search = Search(Space(genes), Goal(), storage, 60_000, 0.0, 0, budget, lambda line: None)
    found = search.run(InProcess(lambda: work))
    whole = search.front_of(found.evaluated)
    points = np.array([(one.loss, one.bytes) for one in whole])
    kept = [(one.loss, one.bytes) for one in found.front]
    assert len(kept) == 6
    assert min(points[:, 0]) in [loss for loss, _ in kept]
    crowded = points[spread(np.log(points + np.array([1e-3, 0])), 6)]
    share = [hypervolume(np.array(some), (1.0, 60_000.0)) for some in (kept, crowded, points)]
    assert share[1] < share[0] < share[2]


LADDER = {
    "levels:w1a1": (-9000, 0.9),
    "levels:w2a2": (-8500, 0.3),
    "dynamic:int8": (-7000, 0.01),
    "float": (0, 0.0),
}
"""Bytes and losses of each layer alone, which add up."""


def adding_up(
    folder: Path, evaluations: int | None, minutes: float | None = None
) -> tuple[Searched, list[str]]:
    """Search three layers whose figures add up."""
    genes = tuple(Gene((name,), tuple(LADDER), False, (name,)) for name in "abc")
    storage = Storage(folder / "search.db", {})
    for name in "abc":
        for option, (size, loss) in LADDER.items():
            storage.add_alone(Alone(name, option, size, loss, 0.0, ""))

    def work(task: Task) -> dict[str, object]:
        chosen = [LADDER[option] for option in task["candidate"]]
        size, loss = 60_000 + sum(one for one, _ in chosen), sum(one for _, one in chosen)
        return {"figures": {"bytes": size, "loss": loss, "agreement": None}, "model": b""}

    told: list[str] = []
    budget = Budget(evaluations, minutes, files=6)
    search = Search(Space(genes), Goal(), storage, 60_000, 0.0, 0, budget, told.append)
    return search.run(InProcess(lambda: work)), told


def test_a_short_search_begins_with_uniform_networks_the_most_accurate_first(
    tmp_path: Path,
) -> None:
    found, told = adding_up(tmp_path, 3)
    same = [one.candidate for one in found.evaluated]
    assert same == [("dynamic:int8",) * 3, ("levels:w1a1",) * 3, ("levels:w2a2",) * 3]
    assert min(one.loss for one in found.front) == pytest.approx(0.03)
    assert found.unreached > 0
    (line,) = [line for line in told if "reached" in line]
    start = f"of the {found.unreached + 3} networks that a search begins with"
    assert line.startswith(f"{found.unreached} {start} were not reached")
    (tmp_path / "longer").mkdir()
    _, told = adding_up(tmp_path / "longer", found.unreached + 2)
    assert any(line.startswith(f"1 {start} was not reached") for line in told)


def test_time_that_measuring_layers_took_leaves_the_uniform_networks(tmp_path: Path) -> None:
    found, told = adding_up(tmp_path, None, minutes=1e-9)
    assert [len({*one.candidate}) for one in found.evaluated] == [1, 1, 1]
    assert found.front
    assert any("more evaluations or minutes" in line for line in told)


def test_the_front_of_sums_is_evaluated_from_its_ends_inwards(tmp_path: Path) -> None:
    found, _ = adding_up(tmp_path, 8)
    same, rest = (
        [one.bytes for one in some] for some in (found.evaluated[:3], found.evaluated[3:])
    )
    assert rest[0] > max(rest[1:]), "the largest first"
    assert min(same) < min(rest), "the smallest is uniform"
    assert min(rest) < rest[1] < max(rest), "the middle"
    assert min(rest[2:4]) < rest[1] < max(*rest[2:4], rest[4]), "the quarters"


def test_what_was_not_reached_is_said_by_name_until_it_is(tmp_path: Path) -> None:
    found, told = adding_up(tmp_path, 1)
    assert "among them levels:w1a1, levels:w2a2 everywhere: more evaluations" in told[-1]
    assert found.unreached > 2
    found, told = adding_up(tmp_path, 200)
    assert found.unreached == 0
    assert not [line for line in told if "reached" in line]


def test_bisecting_takes_the_ends_the_middle_the_quarters() -> None:
    sums = [Sum((str(n),), 0.0, n, 0.0) for n in range(9)]
    assert [one.bytes for one in bisected(sums)] == [8, 0, 4, 2, 6, 1, 3, 5, 7]
    assert [one.bytes for one in bisected(sums[:2])] == [1, 0]
    assert bisected(sums[:1]) == sums[:1]
    assert bisected([]) == []


# ------------------------------------------------------------------------------------- runners
def squares(runner: Runner, numbers: list[int]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    tasks = iter([(str(number), {"number": number}) for number in numbers])
    drive(runner, tasks, lambda key, outcome: found.update({key: outcome}))
    runner.close()
    return found


def test_here_a_task_that_fails_is_one_failure(tmp_path: Path) -> None:
    found = squares(InProcess(Begin(tmp_path)), [1, 99, 3])
    assert [found[key].result for key in ("1", "3")] == [1, 9]
    assert found["99"].error == "ValueError: no square"


def test_a_task_whose_worker_dies_is_done_by_another(tmp_path: Path) -> None:
    notes: list[str] = []
    numbers = [5, -1, 7, 99, 2, 3]
    runner = Workers(2, Begin(tmp_path), notes.append)
    found = squares(runner, numbers)
    assert {key: o.result for key, o in found.items() if o.error is None} == {
        str(n): n * n for n in numbers if n != 99
    }
    assert found["99"].error == "ValueError: no square"
    assert len(notes) == 1
    assert "another one goes on" in notes[0]


def test_a_cluster_does_tasks_and_keeps_what_it_was_sent(tmp_path: Path) -> None:
    from distributed import LocalCluster

    where = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with LocalCluster(processes=False, **where) as local:  # type: ignore[no-untyped-call]  # Dask has no types
        runner = Cluster(local.scheduler_address, Begin(tmp_path))
        assert runner.capacity == 2
        found = squares(runner, [5, 99, 7, 2, 3])
    assert {key: o.result for key, o in found.items()} == {
        **{str(n): n * n for n in (5, 7, 2, 3)},
        "99": None,
    }
    assert found["99"].error == "ValueError: no square"


def test_a_cluster_refuses_an_address_without_a_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.2)
    with pytest.raises(QuantizeError, match=r"127\.0\.0\.1:1: no Dask scheduler with a worker"):
        Cluster("tcp://127.0.0.1:1", Begin(tmp_path))


def test_a_key_says_a_candidate_in_a_letter_for_each_gene() -> None:
    candidate = ("levels:w1a1", "float", "levels:w1a1", "dynamic:int8")
    assert key_of(candidate) == "ABAC levels:w1a1 float dynamic:int8"
    every = (*LEARNED_OPTIONS, *UNIFORM_OPTIONS, UNCHANGED)
    for one in (candidate, every, every[::-1]):
        assert candidate_of(key_of(one)) == one


def test_a_candidate_of_80_layers_is_sent_in_a_kilobyte(tmp_path: Path) -> None:
    names = [f"model/block_{n}/conv/Relu;model/block_{n}/norm/FusedBatchNormV3" for n in range(80)]
    genes = tuple(Gene((name,), OPTIONS[:3], measured=(name,)) for name in names)
    storage = Storage(tmp_path / "search.db", {})
    way = "output-aware, refit 0.05, rectified, offset"
    for name, option in product(names, OPTIONS[:3]):
        size = 16 * parse(option).weights
        storage.add_alone(Alone(name, option, size, 1 / size, 0.0, way))
    sizes: list[int] = []

    class Weighed(InProcess):
        def submit(self, key: str, task: Task) -> None:
            sizes.append(len(pickle.dumps((key, task))))
            super().submit(key, task)

    def work(task: Task) -> dict[str, object]:
        figures = {"bytes": len(sizes), "loss": 1.0, "agreement": None}
        return {"figures": figures, "model": b""}

    budget = Budget(evaluations=30)
    search = Search(Space(genes), Goal(), storage, 10**6, 0.0, budget=budget, say=lambda line: None)
    search.run(Weighed(lambda: work))
    assert max(sizes) < 1000
