"""A generator of random numbers: Threefry2x32-20, 2 numbers of 32 bits in 20 rounds.

Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011, section 4.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.kernels.arrays.philox import Words

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""Makes a third key of the two."""

ROUNDS = 5
"""Times four mixing steps, each time followed by the next keys."""

BLOCK = 2
"""Numbers that are made at once."""


def mixed(counter: list[Words], key: tuple[int, int]) -> NDArray[np.uint32]:
    """Make numbers [blocks, 2] of counters, their lower and their upper 32 bits, and a key."""
    keys = [np.uint32(k) for k in (*key, key[0] ^ key[1] ^ PARITY)]
    a, b = (n.astype(np.uint32) + k for n, k in zip(counter, keys, strict=False))
    for number in range(ROUNDS):
        for turn in ROTATIONS[number % 2]:
            a = a + b
            b = (b << np.uint32(turn) | b >> np.uint32(32 - turn)) ^ a
        a = a + keys[(number + 1) % 3]
        b = b + keys[(number + 2) % 3] + np.uint32(number + 1)
    return np.stack([a, b], axis=1)
