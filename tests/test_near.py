"""Which tests are near a file, and what is noted to know it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests import near, touched

PROGRAM = """
class Inner:
    size = 3

    def used(self):
        return [n for n in range(self.size)]

    def unused(self):
        return 4

def outer():
    return Inner().used()
"""


def test_functions_that_are_entered_are_noted_and_what_an_import_does_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "product" / "inner.py"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    tracer = touched.Tracer(path.parent)
    names: dict[str, Any] = {}
    before, entered = sys.gettrace(), tracer.begin()
    tracer.start()
    exec(compile(PROGRAM, str(path), "exec"), names)
    assert entered == {}
    names["outer"]()
    tracer.stop()
    sys.settrace(before)
    (functions,) = entered.values()
    assert list(entered) == ["product/inner.py"]
    assert {"outer:11", "Inner.used:5"} <= functions
    assert not any("unused" in name for name in functions)


def test_tests_that_enter_much_of_a_file_and_little_else_come_first() -> None:
    functions = {"wide": {"a", "b", "c"}, "close": {"a", "b"}, "other": {"d"}, "same": {"a"}}
    sizes = {"wide": 400, "close": 10, "other": 900, "same": 20}
    assert touched.telling(functions, sizes) == ["close", "wide", "other", "same"]


def test_the_table_knows_the_files() -> None:
    """Where not: ``python -m tests.near --measure``."""
    files = {p.relative_to(near.ROOT).as_posix() for p in (near.ROOT / "luciole").rglob("*.py")}
    known = touched.table()
    assert len(known.keys() & files) > 0.6 * len(files)
    assert all(0 < len(tests) <= touched.MOST for tests in known.values())
    named = {test for tests in known.values() for test in tests}
    assert len(named & near.tests().keys()) > 0.8 * len(named)


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("luciole/kernels/cumsum.py", "tests/ops/test_cumsum.py"),
        ("tests/test_value.py", "tests/test_value.py"),
        ("tests/lstm_support.py", "tests/ops/test_lstm.py"),
        ("docs/index.md", "tests/test_docs.py"),
        ("luciole/ir/ops/cumsum.py", "tests/test_layers.py"),
    ],
)
def test_each_file_has_tests(file: str, test: str) -> None:
    assert test in near.tests_of(file)


def test_a_file_that_nobody_measured_has_those_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "table", dict)
    assert near.tests_of("luciole/somewhere/cumsum.py")[0] == "tests/ops/test_cumsum.py"


def test_tests_are_chosen_that_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"a": 30.0, "b": 40.0, "c": 10.0}
    monkeypatch.setattr(near, "tests_of", {"x": ["a", "b"], "y": ["c"]}.__getitem__)
    monkeypatch.setattr(near, "seconds", costs.__getitem__)
    assert near.chosen(["x", "y"]) == (["a", "c"], ["b"])


def test_near_refuses_a_file_that_no_test_is_known_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert near.main(["/nowhere/at/all.xyz"]) == 1
    assert capsys.readouterr().out.startswith("no short test is known of ../")
