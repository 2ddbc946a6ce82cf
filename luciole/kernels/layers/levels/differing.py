"""Counters of differing bits that are emptied into others before they are full."""

from __future__ import annotations

from luciole.kernels import jit
from luciole.kernels.jit.vector.bits import BYTEWISE, MOST_WORDS, Small
from luciole.kernels.jit.vector.vectors import Ints


@jit.inlined
def emptied(tile: Ints, few: Small, left: int) -> tuple[Ints, Small, int]:
    """Add small counters to a tile when no more words are ``left`` that they can count; where words
    are counted, they are never full.
    """
    if BYTEWISE and left == 0:
        return jit.small_added(tile, few), jit.small_counters(tile), MOST_WORDS
    return tile, few, left
