"""The generator of TensorFlow's random numbers: Philox4x32-10, 4 numbers of 32 bits in 10 rounds.

Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Numbers of 32 bits, with room for their products."""

MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
WORD = np.uint64(32)
MASK = np.uint64(0xFFFFFFFF)

BLOCK = 4
"""Numbers that are made at once."""


class Philox:
    """A sequence of numbers that two seeds of 64 bits decide."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._key = halves(seed)
        self._high = halves(seed2)
        self._blocks = 0

    def draw(self, blocks: int) -> Words:
        """Draw the next numbers [blocks, 4], below 2^32."""
        counter = np.arange(blocks, dtype=np.uint64) + np.uint64(self._blocks)
        self.skip(blocks)
        high = [np.full(blocks, n, np.uint64) for n in self._high]
        return mixed([counter & MASK, counter >> WORD, *high], self._key)

    def skip(self, blocks: int) -> None:
        """Leave blocks out."""
        self._blocks = (self._blocks + blocks) % (1 << 64)


def halves(seed: int) -> tuple[int, int]:
    """Split numbers into their lower and their upper 32 bits."""
    return seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF


def mixed(counter: list[Words], key: tuple[int, int]) -> Words:
    """Apply ten rounds to the counters; the key is raised after each."""
    a, b, c, d = counter
    for i in range(ROUNDS):
        low, high = (
            np.uint64(k + i * step & 0xFFFFFFFF) for k, step in zip(key, KEY_STEPS, strict=True)
        )
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b = (second >> WORD) ^ b ^ low, second & MASK
        c, d = (first >> WORD) ^ d ^ high, first & MASK
    return np.stack([a, b, c, d], axis=1)


def singles(words: Words) -> NDArray[np.float32]:
    """Make numbers from 0 up to 1 of the lower 23 bits of each word."""
    bits = (words & np.uint64(0x7FFFFF)).astype(np.uint32) | np.uint32(127 << 23)
    return np.asarray(bits.view(np.float32) - np.float32(1))


def doubles(high: Words, low: Words) -> NDArray[np.float64]:
    """Make numbers from 0 up to 1 of the lower 20 bits of one word and all of another."""
    bits = (high & np.uint64(0xFFFFF)) << WORD | low | np.uint64(1023 << 52)
    return np.asarray(bits.view(np.float64) - 1)
