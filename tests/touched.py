"""Which functions of the product the tests of a file enter: a plugin of ``python -m tests.near
--measure``, and the table that it writes.

A tracer notes each function once for each file of tests, so that tests take little longer. Programs
that tests start in processes of their own are not seen.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "touched.json"
MOST = 12
"""Files of tests that the table keeps for a file of the product: the most telling ones."""

Functions = dict[str, set[str]]
"""Functions by the file that they stand in."""


@dataclass
class Tracer:
    """Notes which functions below a folder are entered; what modules and classes do while they are
    imported does not count.
    """

    folder: Path
    entered: Functions = field(default_factory=lambda: defaultdict(set))
    _seen: dict[int, CodeType] = field(default_factory=dict)

    def start(self) -> None:
        """Watch all threads that start from now on, and this one."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def stop(self) -> None:
        """Watch no longer."""
        sys.settrace(None)
        threading.settrace(None)

    def begin(self) -> Functions:
        """Note from now on in a new table, which is returned."""
        self.entered = defaultdict(set)
        self._seen.clear()
        return self.entered

    def _enter(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if id(code) not in self._seen:
            self._seen[id(code)] = code  # kept, so that no other takes its number
            self._note(code)

    def _note(self, code: CodeType) -> None:
        path = Path(code.co_filename)
        if code.co_flags & inspect.CO_OPTIMIZED and path.is_relative_to(self.folder):
            name = path.relative_to(self.folder.parent).as_posix()
            self.entered[name].add(f"{code.co_qualname}:{code.co_firstlineno}")


class Watcher:
    """Runs tests of each file for some seconds, and keeps what they enter."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.tracer = Tracer(ROOT / "luciole")
        self.touched: dict[str, Functions] = {}
        self._begin = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Pass over the tests of a file that has had its seconds."""
        name = item.nodeid.partition("::")[0]
        if name not in self.touched:
            self.touched[name] = self.tracer.begin()
            self._begin = _now()
        if _now() - self._begin > self.seconds:
            pytest.skip("its file has had its seconds")
        self.tracer.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        self.tracer.start()

    def pytest_runtest_makereport(self) -> None:
        """Leave pytest's own work between tests alone."""
        self.tracer.stop()


def _now() -> float:
    """Return the seconds that this process has computed, and those that it waited for."""
    return sum(os.times()[:4])


def telling(functions: Mapping[str, set[str]], sizes: Mapping[str, int]) -> list[str]:
    """Order files of tests by what they tell of one file of the product, whose functions they
    enter: first those that enter many of them and little else (``sizes``: functions of the whole
    product), then those that enter the ones still left out; when none is left out, once more.
    """
    order: list[str] = []
    left: set[str] = set()
    while len(order) < min(MOST, len(functions)):
        rest = [name for name in sorted(functions) if name not in order]
        if not any(functions[name] & left for name in rest):
            left = set().union(*functions.values())
        best = max(rest, key=lambda name: len(functions[name] & left) / sizes[name] ** 0.5)
        order.append(best)
        left -= functions[best]
    return order


def write(touched: Mapping[str, Functions]) -> None:
    """Write the table: for each file of the product the most telling tests, as numbers in a list
    of their names.
    """
    sizes = {test: sum(map(len, found.values())) for test, found in touched.items()}
    files = sorted({name for functions in touched.values() for name in functions})
    chosen = {
        name: telling({t: f[name] for t, f in touched.items() if f.get(name)}, sizes)
        for name in files
    }
    names = sorted({test for tests in chosen.values() for test in tests})
    lines = [f'    "{name}": {[names.index(test) for test in chosen[name]]}' for name in files]
    listed = ",\n".join(f'    "{name}"' for name in names)
    text = f'{{\n  "tests": [\n{listed}\n  ],\n  "files": {{\n' + ",\n".join(lines) + "\n  }\n}\n"
    TABLE.write_text(text)


@cache
def table() -> Mapping[str, Sequence[str]]:
    """Read which tests tell most of each file of the product, the most telling first."""
    known = json.loads(TABLE.read_text())
    return {name: [known["tests"][n] for n in numbers] for name, numbers in known["files"].items()}
