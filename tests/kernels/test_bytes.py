"""Vectors of bytes in memory: nothing is written behind the lanes that a kernel asks for."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.jit import Kernel, Pointer
from luciole.kernels.jit.vector.byte_functions import rescaled_lanes
from luciole.kernels.jit.vector.bytes import load_all_bytes, load_bytes, store_bytes
from luciole.kernels.jit.vector.dots import turn_first_bytes

COUNTS = (0, 1, 2, 15, 16)
UNTOUCHED = 99


def storing(count: int) -> Kernel:
    """Bytes times 1/2, cut off: as many as the record says, or ``count`` where it is not -1."""

    @jit.kernel
    def stores(r: Pointer) -> None:
        halves = rescaled_lanes(load_all_bytes(r[1], 0), 1 << 30, 0, 0, 0)
        store_bytes(halves, -3, 127, r[0], r[2] if count < 0 else count)

    return stores


def turning(count: int) -> Kernel:
    @jit.kernel
    def turns(r: Pointer) -> None:
        turn_first_bytes(r[1], r[0], 128, r[2] if count < 0 else count)

    return turns


def loading(count: int) -> Kernel:
    @jit.kernel
    def loads(r: Pointer) -> None:
        given = load_bytes(r[1], r[2] if count < 0 else count, 7, 0)
        store_bytes(given, -128, 127, r[0], 16)

    return loads


def run(kernel: Kernel, x: Array, count: int) -> list[int]:
    """What a kernel leaves in 32 bytes when it writes behind the first 3."""
    y = np.full(32, UNTOUCHED, np.int8)
    record = np.array([y.ctypes.data + 3, x.ctypes.data, count], np.int64)
    jit.caller(np.array([[kernel.address, record.ctypes.data]], np.int64))()
    found: list[int] = y.tolist()
    return found


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_stores_write_as_many_bytes_as_they_are_told(count: int, is_known: bool) -> None:
    x = np.arange(-9, 7, dtype=np.int8)
    given = count if is_known else -1
    halves = np.maximum(np.floor(x / 2 + 0.5), -3).astype(int).tolist()
    turned = (x ^ np.int8(-128)).tolist()
    for kernel, results in ((storing(given), halves), (turning(given), turned)):
        expected = [UNTOUCHED] * 3 + results[:count] + [UNTOUCHED] * (29 - count)
        assert run(kernel, x, count) == expected


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_loads_fill_the_lanes_that_are_left(count: int, is_known: bool) -> None:
    x = np.arange(-9, 7, dtype=np.int8)
    found = run(loading(count if is_known else -1), x, count)
    assert found[3:19] == x[:count].tolist() + [7] * (16 - count)
