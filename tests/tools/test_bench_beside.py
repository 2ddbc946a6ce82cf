"""``python -m benchmarks --beside``: what a checkout is, rows of pairs, and a real pair of
processes; no duration is asserted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import __main__ as suite
from benchmarks import beside
from luciole.exporters import to_bytes
from luciole.ir import LucioleError
from luciole.tools.random_models import dense, lq_dense

PAIRS = [
    {"even": (10.0, 10.2), "slow": (11.0, 10.0), "once": (11.0, 10.0)},
    {"even": (10.0, 9.9), "slow": (22.0, 20.0), "once": (10.0, 10.0)},
    {"even": (12.0, 12.0), "slow": (10.7, 10.0), "once": (11.0, 10.0)},
]


def test_a_row_is_slower_where_every_pair_says_so() -> None:
    rows = beside.rows_of(PAIRS, {"even"})
    assert [row.slower for row in rows] == [False, True, False]
    even, slow, once = rows
    assert even.line() == "even | 10.00 | 10.20 | 1.00 (0.99 to 1.02) | differ |"
    assert slow.line() == "slow | 11.00 | 10.00 | 0.91 (0.91 to 0.93) | same |"
    assert (once.ratio, max(once.ratios)) == (10 / 11, 1.0)
    assert beside.verdict(rows) == (
        "slower by over 5% in every pair: slow (0.91); half of the 3 ratios are below 0.909"
    )
    assert beside.verdict([even]).startswith("nothing is slower by over 5% in every pair; half of")
    assert beside.verdict([]) == "nothing was measured"


def test_a_pair_of_processes_runs_files_of_this_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"{name}.circle" for name in ("floats", "levels", "broken")}
    files["floats"].write_bytes(to_bytes(dense((8, 4)), "circle"))
    files["levels"].write_bytes(to_bytes(lq_dense((8, 4), 2), "circle"))
    files["broken"].write_bytes(b"no model")
    times, differing = beside.pair_times((beside.HERE, beside.HERE), files, 1, swapped=False)
    assert list(times) == ["floats", "levels"]
    assert all(here > 0 and there > 0 for here, there in times.values())
    assert differing == set()
    assert "broken: left out: " in capsys.readouterr().err


def test_a_luciole_from_elsewhere_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "luciole" / "__init__.py"
    package.parent.mkdir()
    package.write_text("__file__ = '/elsewhere/luciole/__init__.py'")
    side = beside.Side(beside.checkout_of(str(tmp_path)), [])
    with pytest.raises(LucioleError, match=f"^{tmp_path}: luciole came from /elsewhere$"):
        side.opened()
    side.end()


def test_a_process_that_ends_early_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "luciole" / "__init__.py"
    package.parent.mkdir()
    package.write_text("raise SystemExit(3)")
    side = beside.Side(tmp_path, [])
    with pytest.raises(LucioleError, match=f"^{tmp_path}: its process ended early$"):
        side.opened()
    side.end()


def test_words_of_the_command_line_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, sentence in (
        (["--beside", str(tmp_path)], f"error: {tmp_path}: no checkout, there is no "),
        (["--beside", str(beside.HERE), "--only", "latency"], "error: --only chooses programs"),
    ):
        with pytest.raises(SystemExit) as ended:
            suite.main(words)
        assert ended.value.code == 2
        assert sentence in capsys.readouterr().err
