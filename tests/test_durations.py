"""What ``-m quick`` takes, and what is said before tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.durations import ROOT, UNKNOWN, Cost, Table, place, sample, sentence, table

FILES = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}


@pytest.mark.parametrize(
    ("cost", "count"),
    [
        (Cost(400, 4.0, 0.01), 10),  # 0.01 s each
        (Cost(3, 0.03, 0.01), 3),
        (Cost(10, 1.9, 0.5), 1),
        (Cost(10, 2.5, 1.6), 0),
    ],
)
def test_a_file_has_as_many_quick_tests_as_its_share_allows(cost: Cost, count: int) -> None:
    assert cost.quick() == count


def test_a_sample_is_spread_over_a_file() -> None:
    assert list(sample(range(10), 3)) == [0, 4, 8]
    assert list(sample(range(10), 10)) == list(range(10))
    assert list(sample(range(10), 0)) == []


def test_the_table_knows_the_files_and_quick_tests_come_from_every_room() -> None:
    """Where not: measure again, as tests/durations.py says."""
    known = set(table().files)
    assert len(known & FILES) >= 0.4 * len(FILES)
    assert len(known - FILES) <= 0.1 * len(FILES)
    quick = (name for name in FILES if table().files.get(name, UNKNOWN).quick())
    rooms = {path.name for path in (ROOT / "luciole").iterdir()} & {n.split("/")[1] for n in known}
    assert {Path(name).parts[1] for name in quick} >= rooms


def test_quick_tests_take_less_than_a_minute() -> None:
    costs = [cost for cost in table().files.values() if cost.quick()]
    tests = sum(c.longest + (c.quick() - 1) * c.seconds / c.tests for c in costs)
    assert 5 < tests < 40  # collecting them and starting takes 10 s more


def test_workers_begin_with_the_files_that_take_longest() -> None:
    costs = sorted(table().files.items(), key=lambda item: item[1].seconds)
    (short, _), *_, (long, _) = costs
    tests = [f"{short}::test_a", "tests/test_new.py::test_b", f"{long}::test_z", f"{long}::test_a"]
    assert sorted(tests, key=place) == [tests[2], tests[3], tests[1], tests[0]]


def test_it_is_said_how_long_tests_take() -> None:
    files = {"tests/ops/test_a.py": 40.0, "tests/ops/test_b.py": 50.0, "tests/test_c.py": 120.0}
    costs = Table({name: Cost(1, seconds, seconds) for name, seconds in files.items()}, 125)
    assert sentence(["tests"], costs).startswith(
        "all tests take more than 4 minutes, 2 on two cores"
    )
    assert sentence(["tests/ops"], costs) == "these tests take about 1.5 minutes"
    assert sentence(["tests/ops/test_a.py"], costs) == ""


def test_pytest_selects_quick_tests() -> None:
    parts = {name: c for name, c in table().files.items() if 0 < c.quick() < c.tests // 2}
    cheapest = min(parts.keys() & FILES, key=lambda name: parts[name].seconds)
    command = [sys.executable, "-m", "pytest", cheapest, "-m", "quick"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert " passed, " in done.stdout
    assert " deselected" in done.stdout
