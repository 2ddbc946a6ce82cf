"""How much a process grows while a kernel runs, beside the arrays that ``memory_limit`` counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from luciole.kernels.core.meter import UNCOUNTED
from tests.fuzz.peaks import HUNGRY, UNMEASURED, Peak

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="Linux tells the highest memory"
)


class Kernel(NamedTuple):
    """What a line of the program says."""

    name: str
    is_native: bool
    peaks: list[Peak]


def measured(*names: str) -> list[Kernel]:
    """What ``tests.fuzz.peaks`` says, in a process that gives back at once what it frees."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.peaks", *names],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 16), "OPENBLAS_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Kernel(*json.loads(line)) for line in told.stdout.splitlines()]


def greedy(kernels: list[Kernel]) -> list[Kernel]:
    """Those that took more than is counted, which a busy machine may let a frugal one seem once."""
    return [k for k in kernels if any(peak["beside"] > UNCOUNTED for peak in k.peaks)]


def test_every_kernel_takes_little_beside_arrays() -> None:
    kernels = measured()
    assert {k.name.split()[0] for k in kernels if not k.peaks} <= UNMEASURED.keys()
    hungry = {k.name.split()[0] for k in greedy(kernels)}
    assert not hungry or greedy(measured(*sorted(hungry))) == [], "a second time, too"
    assert sum(k.is_native for k in kernels) > 90, "those that are built by code of their own"
    assert len(kernels) > 300


def test_a_kernel_that_takes_much_beside_arrays_is_found() -> None:
    kernels = measured(HUNGRY, "Neg")
    assert {k.is_native for k in kernels} == {True, False}
    assert all(peak["beside"] > UNCOUNTED for k in kernels for peak in k.peaks)
    assert all(k.peaks for k in kernels)
