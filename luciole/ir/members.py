"""The inputs or the outputs of a graph: a list that knows at once what is in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, SupportsIndex, TypeVar

T = TypeVar("T", bound=Hashable)
P = ParamSpec("P")
R = TypeVar("R")


def _changing(method: Callable[Concatenate[list[T], P], R]) -> Callable[..., R]:
    """Wrap a list's method so that it forgets the list's former members."""

    @wraps(method)
    def change(self: Members[T], *args: P.args, **kwargs: P.kwargs) -> R:
        self._known = None
        return method(self, *args, **kwargs)

    return change


class Members(list[T]):
    """A list that looks through all its elements only once for any number of ``in``, and takes
    only what ``check`` does not refuse.
    """

    _known: frozenset[T] | None = None

    def __contains__(self, element: object) -> bool:
        if self._known is None:
            self._known = frozenset(self)
        return element in self._known

    def check(self, member: object) -> None:
        """Refuse other things than members: none, unless a class says otherwise."""

    def append(self, member: T) -> None:
        """Append a member as a list does."""
        self.insert(len(self), member)

    def extend(self, members: Iterable[T]) -> None:
        """Append members as a list does."""
        added = list(members)
        for member in added:
            self.check(member)
        self._known = None
        super().extend(added)

    def insert(self, place: SupportsIndex, member: T) -> None:
        """Insert a member as a list does."""
        self.check(member)
        self._known = None
        super().insert(place, member)

    __setitem__ = _changing(list.__setitem__)
    __delitem__ = _changing(list.__delitem__)
    clear = _changing(list.clear)
    remove = _changing(list.remove)

    def pop(self, index: SupportsIndex = -1) -> T:
        """Remove and return a member as a list does."""
        self._known = None
        return super().pop(index)

    def __iadd__(self, members: Iterable[T]) -> Members[T]:  # type: ignore[override, misc]  # list has two kinds of +
        self.extend(members)
        return self

    def __imul__(self, times: SupportsIndex) -> Members[T]:
        self[:] = list(self) * times
        return self
