"""Arrays that records point into: aligned, kept, and not more than a kernel may take."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from luciole.ir import Array
from luciole.kernels.core.allocation import ALIGNMENT, SHELF, SMALL, side_by_side
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.meter import Meter


@pytest.mark.usefixtures("without_guard")
def test_copies_are_aligned_and_hold_what_they_copy() -> None:
    memory, array = Memory(), np.arange(7, dtype=np.int16)
    address = memory.keep(array, 7)
    assert address % ALIGNMENT == 0
    assert list((ctypes.c_int16 * 7).from_address(address)) == list(range(7))
    array[0] = 9
    assert ctypes.c_int16.from_address(address).value == 0


@pytest.mark.usefixtures("without_guard")
def test_small_copies_of_a_plan_stand_one_behind_the_other() -> None:
    memory = Memory()
    with side_by_side():
        first, large, second = (memory.keep(np.zeros(n, np.uint8), n) for n in (65, SMALL + 1, 64))
        others = [memory.keep(np.full(SMALL, 7, np.uint8), SMALL) for _ in range(SHELF // SMALL)]
    assert second - first == 2 * ALIGNMENT
    assert not first <= large < first + SHELF
    assert {(ctypes.c_uint8 * SMALL).from_address(place)[SMALL - 1] for place in others} == {7}
    assert (ctypes.c_uint8 * 65).from_address(first)[64] == 0


def test_constants_are_packed_once_for_all_steps_of_a_plan() -> None:
    weights, packs = np.arange(12, dtype=np.float32).reshape(3, 4), []

    def place(source: Array, form: str) -> int:
        def turned() -> Array:
            packs.append(form)
            return source.T

        return Memory().keep_packed(source, form, turned, *source.shape[::-1])

    with side_by_side():
        first = place(weights, "turned")
        assert place(weights, "turned") == first
        assert place(weights, "otherwise") != first
        assert place(weights[:2], "turned") != first
        assert place(weights.copy(), "turned") != first
    assert packs == ["turned", "otherwise", "turned", "turned"]
    place(weights, "turned")
    assert len(packs) == 5


def test_scratch_is_zero_at_first() -> None:
    memory = Memory()
    assert list((ctypes.c_uint32 * 6).from_address(memory.scratch(2, 3))) == [0] * 6


def test_scratch_refuses_more_than_a_kernel_may_take() -> None:
    with Meter(1000):
        Memory().scratch(250)
        with pytest.raises(ExecutionError, match="for itself would take 1004 bytes, 1000 are"):
            Memory().scratch(251)


def test_copies_refuse_another_shape_than_the_kernel_walks() -> None:
    memory, array = Memory(), np.zeros((3, 5), np.float32)
    with pytest.raises(
        ExecutionError, match=r"^a compiled kernel would walk \[3,6\] of an array \["
    ):
        memory.keep(array, 3, 6)
    with pytest.raises(ExecutionError, match=r"would walk \[15\] of an array \[3,5\]$"):
        memory.keep(array, 15)
    assert memory.arrays == []
