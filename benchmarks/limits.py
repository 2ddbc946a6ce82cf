"""How quickly this machine can count differing bits and read memory: what kernels cannot beat."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Pointer
from luciole.kernels.jit.vector.bit_lookups import WORD_BYTES

NEAR = 17 << 10
"""Bytes that surely are in the nearest cache."""

STEP = 4 * LANES * WORD_BYTES
"""Bytes that are read at once."""

WORDS = 4
"""Words that meet as many others in one step, as in a layer of 4 bits."""

ONES = 0x10101010
"""What stands for an input as well as for a weight, however bits are counted."""


@jit.kernel
def lq_counting(r: Pointer) -> None:
    """Let WORDS x WORDS x 16 words meet as many ``r[2]`` times, from NEAR bytes, and count the bits
    in which they differ.
    """
    tile = jit.counters(1, 2, 4, 2)
    small = jit.small_counters(tile)
    for k in range(r[2]):
        at = r[0] + ((k & 63) << 8)
        small = jit.xor_popcount(small, at, 0, at)
    chains = jit.begin_chains(tile, r[0], 0)
    chains = jit.scale_accumulate(chains, jit.small_added(tile, small), r[0])
    jit.write(jit.joined(chains), np.float32(0), np.float32(0), r[1], 0, 2 * LANES)


@jit.kernel
def lq_reading(r: Pointer) -> None:
    """Read ``r[2]`` times STEP bytes, in order. All sums are written: what is not is not read."""
    tile = jit.counters(1, 1, 1, 4)
    small = jit.small_counters(tile)
    for k in range(r[2]):
        at = r[0] + STEP * k
        jit.prefetch_words(tile, at)
        small = jit.xor_popcount(small, r[0], 0, at)
    chains = jit.begin_chains(tile, r[0], 0)
    chains = jit.scale_accumulate(chains, jit.small_added(tile, small), r[0])
    jit.write(jit.joined(chains), np.float32(0), np.float32(0), r[1], 0, 4 * LANES)


def counted_per_us() -> float:
    """Pairs of bits that meet in a microsecond when nothing is waited for."""
    steps = 10_000
    bits = 32 * LANES * WORDS * WORDS * steps
    return bits / _fastest_us(lq_counting, np.full(NEAR // 4, ONES, np.uint32), steps)


def bytes_per_us(size: int) -> float:
    """Bytes that are read in a microsecond from memory of this size that was just read before."""
    steps = max(1, size // STEP)
    data = np.full(STEP // 4 * steps, ONES, np.uint32)
    return STEP * steps / _fastest_us(lq_reading, data, steps)


def _fastest_us(
    kernel: jit.Kernel, data: np.ndarray[tuple[int], np.dtype[np.uint32]], n: int
) -> float:
    """The least time of one run."""
    result = np.zeros(4 * LANES, np.float32)
    record = np.array([data.ctypes.data, result.ctypes.data, n], np.int64)
    repeated = max(1, (4 << 20) // (STEP * n))
    steps = np.repeat([[kernel.address, record.ctypes.data]], repeated, 0).astype(np.int64)
    return min(_time_us(jit.caller(steps)) for _ in range(50)) / repeated


def _time_us(call: Callable[[], object]) -> float:
    begun = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begun) / 1000
