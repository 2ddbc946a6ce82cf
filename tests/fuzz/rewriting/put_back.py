"""Repaired faults, each put back by exchanging the function that repaired it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

FAULTS: dict[int, Callable[[], AbstractContextManager[None]]] = {}


@contextmanager
def fault(number: int | None) -> Iterator[None]:
    """Put a fault back while this lasts, none for no number."""
    with nullcontext() if number is None else FAULTS[number]():
        yield
