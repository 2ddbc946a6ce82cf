"""Computing operators while a model is read: formats that compute their own shapes need it.

Kernels are another room's. Whoever starts the program hands them in, see ``luciole/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from luciole.ir import Array, Op


class Computing(Protocol):
    """Functions of kernels that readers call."""

    def evaluate(self, op: Op, /) -> Sequence[Array]:
        """Compute an operator whose operands are all constant. Raises LucioleError."""

    def bounded(self, most: int, who: str, allowed: str, /) -> AbstractContextManager[object]:
        """Return a context, which may be entered again inside, that refuses arrays which together
        take more than ``most`` bytes while they live: LucioleErrors that are MemoryErrors as well,
        and name ``who`` where no operator takes them and what is ``allowed``.
        """

    def has_kernel(self, op: Op, /) -> bool:
        """Return whether an operator has a kernel for its operands as they are."""


_GIVEN: list[Callable[[], Computing]] = []


def compute_with(find: Callable[[], Computing]) -> None:
    """Set the function whose result readers compute with; it is called when one first does."""
    _GIVEN[:] = [find]


def computing() -> Computing:
    """Return the kernels that readers compute with."""
    return _GIVEN[0]()
