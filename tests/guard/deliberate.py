"""Cases in which a kernel touches a byte of an array or, in every other one, the next one outside.

Number 0 and 1 read, 2 and 3 write. Workers run them like any others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from luciole.kernels import jit
from luciole.kernels.core.allocation import chosen
from luciole.kernels.core.memory import Memory
from luciole.kernels.jit import Pointer
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from tests.guard.memory import Guard

PER_MODEL = 1
SIZE = 5000
"""Bytes: more than a page, and no multiple of anything that guards might round to."""

BYTE = int(Kind.UINT8)


@jit.kernel
def read_byte(r: Pointer) -> None:
    """Record: an array and a place in it, where to write what is found."""
    integers_at(r[2], BYTE)[0] = integers_at(r[0], BYTE)[r[1]]


@jit.kernel
def write_byte(r: Pointer) -> None:
    """Record: an array and a place in it."""
    integers_at(r[0], BYTE)[r[1]] = 1


class Case(NamedTuple):
    """Whether the kernel writes, and whether it goes too far."""

    writes: bool
    is_too_far: bool

    @property
    def what(self) -> str:
        return f"{'write' if self.writes else 'read'} {'outside' if self.is_too_far else 'inside'}"


def make(seed: int, number: int) -> Case:
    """The case of that number."""
    return Case(number // 2 % 2 == 1, number % 2 == 1)


def run(case: Case, seed: int) -> str:
    """Touch the byte at the end where this process has its guard."""
    guard, memory = chosen(), Memory()
    assert isinstance(guard, Guard)
    inside, outside = (SIZE - 1, SIZE) if guard.is_behind else (0, -1)
    address = memory.keep(np.zeros(SIZE, np.uint8), SIZE)
    kernel = write_byte if case.writes else read_byte
    place = outside if case.is_too_far else inside
    record = np.array([address, place, memory.scratch(1)], np.int64)
    step = memory.step(kernel.address, record)
    jit.caller(np.array([[step.address, step.record.ctypes.data]], np.int64))()
    return case.what
