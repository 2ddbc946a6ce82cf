"""Records that are read in parts, from memory and from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.interpreter.samples import Selection, release
from luciole.ir import Array

WHOLE = np.arange(60, dtype=np.uint8).reshape(20, 3)


def halved(array: Array) -> Array:
    return array.astype(np.float32) / 2


def test_parts_of_a_selection_are_those_of_the_array() -> None:
    places = np.array([3, 4, 9, 15])
    selection = Selection(WHOLE, places, halved)
    whole = halved(WHOLE[places])
    assert (len(selection), selection.shape) == (4, (4, 3))
    assert selection.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(np.asarray(selection), whole)
    np.testing.assert_array_equal(np.asarray(selection[1:3]), whole[1:3])
    np.testing.assert_array_equal(np.asarray(selection[::-2]), whole[::-2])
    np.testing.assert_array_equal(selection[2], whole[2])
    again = Selection.of(selection, np.array([3, 0]))
    np.testing.assert_array_equal(np.asarray(again), whole[[3, 0]])
    assert np.asarray(selection[:0]).shape == (0, 3)


def test_nothing_is_copied_before_it_is_read() -> None:
    whole = WHOLE.copy()
    part = Selection.all(whole)[2:5]
    whole[3] = 7
    assert np.asarray(part)[1].tolist() == [7, 7, 7]


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_released_records_are_read_again(mode: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", WHOLE)
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    if mode != "r":
        mapped[5] = 99
    expected = np.array(mapped)
    release(mapped[4:])
    release(np.asarray(mapped)[::2].reshape(-1))
    np.testing.assert_array_equal(mapped, expected)


def resident(path: Path) -> int:
    """The bytes of a mapped file that lie in this process's memory."""
    text = Path("/proc/self/smaps").read_text().split(str(path), 1)[1]
    found = re.search(r"Rss: +(\d+) kB", text)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is resident")
def test_records_that_were_read_leave_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((64, 65536), np.float32))
    mapped = np.load(path, mmap_mode="r")
    mapped.sum()
    assert resident(path) > 15 << 20
    selection = Selection.all(mapped)
    for begin in range(0, 64, 8):
        assert np.asarray(selection[begin : begin + 8]).all()
    assert resident(path) < 1 << 20
