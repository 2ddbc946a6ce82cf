"""Tell objects that the process was forked: in the child, none of its other threads goes on."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object that relies on threads."""

    def after_fork(self) -> None:
        """React to a fork in the child, before anything else runs there."""


_known: WeakSet[Forked] = WeakSet()


def tell(someone: Forked) -> None:
    """Register an object whose ``after_fork`` is called in every child process, as long as it
    lives.
    """
    _known.add(someone)


def _tell_all() -> None:
    for someone in list(_known):
        someone.after_fork()


os.register_at_fork(after_in_child=_tell_all)
