"""What ``luciole bench`` reports, and clocks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luciole.tools import bench
from luciole.tools.common.timing import Limits
from tests.tools.running import Outcome, call

Capture = pytest.CaptureFixture[str]
QUICK = ("--num_runs", "3", "--min_secs", "0", "--warmup_min_secs=0", "--warmup_runs", "0")


def run(capsys: Capture, *argv: str | Path) -> Outcome:
    return call(capsys, *argv, *QUICK, main=bench.main)


def report(capsys: Capture, *argv: str | Path) -> dict[str, Any]:
    outcome = run(capsys, *argv, "--json")
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


NOW = Limits(runs=1, min_seconds=0, warmup_runs=0, warmup_seconds=0)
"""One run to warm up, one round."""
