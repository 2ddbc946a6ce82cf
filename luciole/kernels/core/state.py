"""State that outlives a run: variables by number, which graphs ran once, and random generators."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from luciole.ir import Array, Graph, LucioleError, Op
from luciole.kernels.arrays.philox import Philox


class State:
    """The variables of an interpreter.

    ``once`` are the graphs that CALL_ONCE has run; ``loop_limit`` is how many steps a WHILE may do;
    ``generators`` are those of the operators that draw random numbers.
    """

    def __init__(self, loop_limit: int) -> None:
        self.loop_limit = loop_limit
        self.once: set[Graph] = set()
        self.generators: WeakKeyDictionary[Op, Philox] = WeakKeyDictionary()
        self._numbers: dict[tuple[str, str], int] = {}
        self._contents: dict[int, Array] = {}

    def handle(self, container: str, name: str) -> int:
        """Return the number of a variable, from 0 in the order in which variables are first
        named.
        """
        return self._numbers.setdefault((container, name), len(self._numbers))

    def assign(self, handle: int, array: Array) -> None:
        """Let a variable hold a copy of an array. Raises LucioleError when there is no such one."""
        self._name(handle)
        self._contents[handle] = array.copy()

    def read(self, handle: int) -> Array:
        """Return the value of a variable. Raises LucioleError when nothing was assigned to it."""
        name = self._name(handle)
        if handle not in self._contents:
            raise LucioleError(f"variable {name!r} is read before anything was assigned to it")
        return self._contents[handle]

    def _name(self, handle: int) -> str:
        for (_, name), number in self._numbers.items():
            if number == handle:
                return name
        raise LucioleError(f"there is no variable {handle}")
