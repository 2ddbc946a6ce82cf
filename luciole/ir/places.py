"""Find elements of long lists where they stood last, or near by."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

_NEAR = 256
"""Places before and behind the last one that are looked at before all elements are numbered anew:
an element is farther away only after as many edits.
"""


class Places(Generic[T]):
    """Where the elements of a list stood last. The list may change without a note: a place counts
    only if the element stands there.
    """

    def __init__(self) -> None:
        self._last: dict[T, int] = {}

    def note(self, element: T, place: int) -> None:
        """Note that an element was put to a place."""
        self._last[element] = place

    def forget(self, element: T) -> None:
        """Forget an element that was taken out."""
        self._last.pop(element, None)

    def find(self, elements: list[T], element: T) -> int:
        """Return the place of an element. Raises ValueError where it is not in the list."""
        last = self._last.get(element)
        if last is not None:
            try:
                return elements.index(element, max(0, last - _NEAR), last + _NEAR + 1)
            except ValueError:
                pass
        self._last = {each: place for place, each in enumerate(elements)}
        return elements.index(element, self._last.get(element, 0))
