"""The numbers of enumerations."""

from __future__ import annotations

from enum import IntEnum
from functools import cache


@cache
def numbers_of(kind: type[IntEnum]) -> frozenset[int]:
    """Return the numbers that have a member."""
    return frozenset(kind)
