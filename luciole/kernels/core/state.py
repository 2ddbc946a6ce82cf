"""State that outlives a run: variables by number, which graphs ran once, and random generators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Op
from luciole.ir.strings import OBJECTS
from luciole.kernels.arrays.philox import Philox
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.budget import Budget


@dataclass(frozen=True)
class Table:
    """A hash table that was filled: NumPy's types of its keys and values, and these."""

    keys: np.dtype[Any]
    values: np.dtype[Any]
    entries: Mapping[int | bytes, Any]


class State:
    """The variables of an interpreter, and its hash tables by number, None before they are filled.

    ``once`` are the graphs that CALL_ONCE has run; ``budget`` has the steps of all WHILE of a run;
    ``generators`` are those of the operators that draw random numbers. ``moves`` counts how often a
    variable was given another array, because what was assigned has another type or shape.
    """

    def __init__(self, loop_limit: int) -> None:
        self.budget = Budget(loop_limit)
        self.once: set[Graph] = set()
        self.generators: WeakKeyDictionary[Op, Philox] = WeakKeyDictionary()
        self.moves = 0
        self.tables: dict[int, Table | None] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._contents: dict[int, Array] = {}

    def handle(self, container: str, name: str) -> int:
        """Return the number of a variable, from 0 in the order in which variables are first
        named.
        """
        return self._numbers.setdefault((container, name), len(self._numbers))

    def assign(self, handle: int, array: Array) -> None:
        """Set a variable to a copy of an array. Raises LucioleError when there is none of this
        number.
        """
        self._name(handle)
        held = self._contents.get(handle)
        if held is not None and held.dtype == array.dtype and held.shape == array.shape:
            held[...] = array
            return
        self.moves += held is not None
        self._contents[handle] = array.copy() if array.dtype == OBJECTS else placed(array)

    def read(self, handle: int) -> Array:
        """Copy the value of a variable. Raises LucioleError when nothing was assigned to it."""
        name, held = self._name(handle), self.place(handle)
        if held is None:
            raise LucioleError(f"variable {name!r} is read before anything was assigned to it")
        return held.copy()

    def place(self, handle: int) -> Array | None:
        """Return the array that holds a variable, None before anything was assigned to it."""
        return self._contents.get(handle)

    def _name(self, handle: int) -> str:
        for (_, name), number in self._numbers.items():
            if number == handle:
                return name
        raise LucioleError(f"there is no variable {handle}")
