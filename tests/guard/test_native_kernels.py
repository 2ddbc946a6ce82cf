"""Compiled kernels on odd extents, at both ends of guarded memory, in processes of their own: one
for each builder and sizes of elements.

``python -m tests.guard`` runs every operator and all types, as often as you like.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from luciole.kernels.core import registry
from tests.fuzz import parent
from tests.guard import cases, deliberate, hostile
from tests.guard.memory import ENDS

SEED = 1


@pytest.fixture(scope="module")
def result() -> parent.Result:
    """What these kernels did, at both ends."""
    work = parent.Work(SEED, cases, seconds=cases.SECONDS)
    return parent.fuzz(work, 0, cases.PER_MODEL * len(cases.different()))


def test_compiled_kernels_stay_inside(result: parent.Result) -> None:
    assert [f"--only {f['case']}: {f['what']}: {f['said']}" for f in result.findings] == []
    names = [f"compiled {end} {cases.name_of(kind)}" for kind in cases.different() for end in ENDS]
    assert [name for name in names if result.ends[name] != 1] == []


def test_every_builder_of_kernels_is_among_them() -> None:
    builders = [
        {(f.__module__, f.__qualname__) for f in map(registry._NATIVE.__getitem__, some)}
        for some in (cases.kinds(), cases.different())
    ]
    assert builders[0] == builders[1]
    assert cases.kinds()[: len(cases.different())] == cases.different()


def test_builders_that_get_past_the_first_wall_mostly_meet_the_second(
    result: parent.Result,
) -> None:
    ends: Counter[str] = Counter()
    for end, count in result.ends.items():
        ends[end.split()[0]] += count
    assert ends["refused"] > ends["inside"] > ends["declined"] > 0


# ------------------------------------------------------------------------------ the guard itself
@pytest.mark.parametrize("end", ENDS)
def test_one_byte_too_many_is_a_finding(end: str) -> None:
    result = parent.fuzz(parent.Work(SEED, deliberate, end), 0, 4)
    found: list[dict[str, Any]] = [
        {"case": 1, "what": "read outside", "said": "signal 11 ended it"},
        {"case": 3, "what": "write outside", "said": "signal 11 ended it"},
    ]
    assert result.findings == found
    assert result.ends == {"read inside": 1, "write inside": 1, "finding": 2}


# --------------------------------------------------------------------------------- hostile files
@pytest.mark.parametrize("end", ENDS)
def test_hostile_files_touch_nothing_outside(end: str) -> None:
    count = len(hostile.files())
    result = parent.fuzz(parent.Work(SEED, hostile, end), 0, count)
    assert [f["what"] for f in result.findings if "signal" in f["said"]] == []
    assert sum(result.ends.values()) == count > 0
