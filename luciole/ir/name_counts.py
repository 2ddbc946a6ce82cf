"""Count the names of a graph's tensors, so that a free one is found without looking at them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import count

_DIGITS = 18
"""Of the longest number behind a name that is read as one: no graph has so many tensors."""


class NameCounts:
    """How many tensors have each name, which several may share, and where numbers behind names
    begin to be free: all smaller ones are taken.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._counts = Counter(names)
        self.total = self._counts.total()
        """How many tensors are counted."""
        self._first_free: dict[str, int] = {}

    def add(self, name: str) -> None:
        """Count a tensor's name."""
        self._counts[name] += 1
        self.total += 1

    def drop(self, name: str) -> None:
        """Count a tensor less; the number behind the last one's name is free again."""
        self._counts[name] -= 1
        self.total -= 1
        if self._counts[name] > 0:
            return
        del self._counts[name]
        stem, _, number = name.rpartition("_")
        if number.isdecimal() and len(number) <= _DIGITS and stem in self._first_free:
            self._first_free[stem] = min(self._first_free[stem], max(1, int(number)))

    def free(self, name: str) -> str:
        """Return a name, or the first one with ``_1``, ``_2``, ... behind it, that is free."""
        if name not in self._counts:
            return name
        numbers = count(self._first_free.get(name, 1))
        number = next(n for n in numbers if f"{name}_{n}" not in self._counts)
        self._first_free[name] = number
        return f"{name}_{number}"
