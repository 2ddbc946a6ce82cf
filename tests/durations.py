"""How long tests take: said when they start, and asked by ``-m quick``, which takes from every file
that was measured as many tests as an equal share of its time allows.

Measure again after many changes, on a quiet machine with two cores:

    python3 -m pytest -n 2 --measure
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "durations.json"
SHARE = 0.1
"""Seconds of each file's tests that ``-m quick`` takes."""
LONGEST = 0.6
"""Seconds of a file's longest test, with the fixtures that it makes for others, for any of them to
be quick.
"""


class Cost(NamedTuple):
    """What a file of tests took: how many they are, their seconds, those of the longest."""

    tests: int
    seconds: float
    longest: float

    def quick(self) -> int:
        """How many of the tests are quick: none or at least one."""
        if self.longest > LONGEST:
            return 0
        mean = self.seconds / self.tests
        return min(self.tests, 1 + int(max(0.0, SHARE - self.longest) / max(mean, 1e-4)))


UNKNOWN = Cost(1, 2 * LONGEST, 2 * LONGEST)
"""What a file counts as that came after the table: nothing of it is quick."""


class Table(NamedTuple):
    """The files' costs, and the seconds that all of them took together on two cores."""

    files: Mapping[str, Cost]
    two_cores: float

    def write(self, path: Path) -> None:
        """Write the table as JSON, a line for each file."""
        lines = (
            f'    "{name}": [{c[0]}, {c[1]:.2f}, {c[2]:.2f}]' for name, c in self.files.items()
        )
        head = f'{{\n  "two_cores": {self.two_cores:.0f},\n  "files": {{\n'
        path.write_text(head + ",\n".join(sorted(lines)) + "\n  }\n}\n")


@cache
def table() -> Table:
    """What was measured."""
    measured = json.loads(TABLE.read_text())
    files = {name: Cost(*cost) for name, cost in measured["files"].items()}
    return Table(files, measured["two_cores"])


class Recorder:
    """Adds up what the tests of each file take."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.tests: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid.partition("::")[0]][report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        files = {
            name: Cost(len(tests), sum(tests.values()), max(tests.values()))
            for name, tests in self.tests.items()
        }
        Table(files, time.monotonic() - self.start).write(TABLE)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one."""
    return hasattr(config, "workerinput")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--measure", action="store_true", help=f"write {TABLE.name}")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quick: a sample of the tests, chosen by what they took")
    if config.getoption("dist", None) == "load":  # what -n means by itself
        config.option.dist = "loadfile"  # modules' fixtures are made once
        config.option.loadscopereorder = False  # files come in the order that workers give them
    if config.getoption("--measure") and not is_worker(config):
        config.pluginmanager.register(Recorder())


def sentence(folders: Sequence[str], costs: Table) -> str:
    """How long the tests of folders or files take, and how less is to be had."""
    files = costs.files.items()
    seconds = sum(c.seconds for name, c in files if any(name.startswith(f) for f in folders))
    if "tests" in folders:
        both = costs.two_cores / 60
        return (
            f"all tests take more than {seconds / 60:.0f} minutes, {both:.0f} on two cores with "
            "-n 2; -m quick takes a sample of them"
        )
    return f"these tests take about {seconds / 60:.1f} minutes" if seconds > 60 else ""


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    narrowed = any(map(config.getoption, ("-k", "-m", "--collect-only")))
    if reporter is None or is_worker(config) or narrowed:
        return
    folders = [str(Path(arg.partition("::")[0]).absolute()) for arg in config.args]
    text = sentence([f.removeprefix(f"{ROOT}/") for f in folders], table())
    if text:
        reporter.write_line(text)


Test = TypeVar("Test")


def sample(tests: Sequence[Test], count: int) -> Sequence[Test]:
    """About that many of the tests, evenly spread."""
    return tests[:: -(-len(tests) // count)] if count else ()


def place(test: str) -> tuple[float, str]:
    """Where a test stands among others: those of files that take longest come first, so that no
    worker ends with one of them alone.
    """
    name = test.partition("::")[0]
    return -table().files.get(name, UNKNOWN).seconds, name


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_worker(config):
        items.sort(key=lambda item: place(item.nodeid))
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item)
    for name, tests in files.items():
        cost = table().files.get(name, UNKNOWN)
        for item in sample(tests, cost.quick()):
            item.add_marker(pytest.mark.quick)
