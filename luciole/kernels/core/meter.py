"""Limit of a model's memory: every array that is made for the model is counted, and every text."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

from luciole.ir import LucioleError
from luciole.kernels.core.errors import MemoryLimitError
from luciole.kernels.jit.metering import Tally, install

SLACK = 16 << 20
"""Bytes beyond the limit that may be taken for small things: records, tables, and what reference
kernels compute on the way for a few elements at a time.
"""

UNCOUNTED = 1 << 19
"""Bytes that a kernel takes at most beside arrays, where its tensors have 2^18 elements: objects of
Python's, and what a library keeps to itself. tests/interpreter/test_peak_memory.py measures all.
"""

_MOST = 1 << 62
"""Bytes that nobody has."""


class Meter:
    """Counts the bytes of NumPy's arrays that are made while it is entered, as long as they live,
    and of other objects as long as somebody says that they are held.

    An array beyond ``limit`` and SLACK is refused: a MemoryError inside, which leaves the ``with``
    statement as MemoryLimitError. A meter may be entered again inside. ``who`` takes the arrays
    that no operator does, and ``allowed`` is what a refusal says of the limit.
    """

    def __init__(
        self,
        limit: int,
        who: str = "planning",
        allowed: str = "memory_limit is {}: raise it if the model is to be trusted",
    ) -> None:
        self.limit = limit
        self._who, self._allowed = who, allowed.format(limit)
        self._tally = Tally.take(min(max(limit, 0) + SLACK, _MOST))
        self._held = 0
        self._before: list[tuple[Token[Meter | None], Any]] = []

    def __del__(self) -> None:
        self._tally.give_back()

    def __enter__(self) -> Meter:
        self._before.append((_PRESENT.set(self), install(self._tally.handler)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        token, handler = self._before.pop()
        install(handler)
        _PRESENT.reset(token)
        if isinstance(error, MemoryError) and not isinstance(error, LucioleError):
            self.explain(self._who)

    @property
    def taken(self) -> int:
        """Bytes of the arrays that are alive, and of anything else that is held."""
        return int(self._tally.counts.taken) + self._held

    def check(self, size: int) -> None:
        """Raise MemoryLimitError where objects of ``size`` bytes are beyond the limit."""
        if self._held + size > self.limit or self.taken + size > self.limit + SLACK:
            raise MemoryLimitError(
                f"{size} bytes of texts are too many where {self.taken} are taken and "
                f"memory_limit is {self.limit}"
            )

    def hold(self, size: int) -> None:
        """Count objects that are no arrays (a negative size: no longer), of which arrays may take
        the less. Raises MemoryLimitError beyond the limit.
        """
        if size > 0:
            self.check(size)
        self._held += size
        self._tally.counts.most -= size

    @property
    def highest(self) -> int:
        """Bytes of the arrays that were alive when they were the most."""
        return int(self._tally.counts.highest)

    def explain(self, who: str) -> None:
        """Raise MemoryLimitError where the last MemoryError was a refusal."""
        counts = self._tally.counts
        refused, counts.refused = counts.refused, 0
        if refused:
            raise MemoryLimitError(
                f"{who}: {refused} bytes are too many where {counts.taken} are taken and "
                f"{self._allowed}"
            ) from None


_PRESENT: ContextVar[Meter | None] = ContextVar("who counts arrays", default=None)


def present() -> Meter | None:
    """Return the meter that was entered last."""
    return _PRESENT.get()


def explain(who: str, error: Exception) -> None:
    """Raise MemoryLimitError where an array was refused. Do nothing for all other errors."""
    meter = present()
    if isinstance(error, MemoryError) and meter is not None:
        meter.explain(who)
