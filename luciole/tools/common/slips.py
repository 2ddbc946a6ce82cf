"""Name the operator that a program's code did not take, and the code."""

from __future__ import annotations

import traceback
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.ir import Op

_PACKAGE = "luciole."


def place_of(error: Exception) -> str:
    """Name the operator that code was at work on when it raised an error that it did not mean to,
    and the code's module; nothing where there was no operator, or what is wrong is the machine's.
    """
    if isinstance(error, OSError | MemoryError):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][::-1]
    op = next(filter(None, map(_operator, frames)), None)
    modules = [str(frame.f_globals.get("__name__")) for frame in frames]
    module = next((name for name in modules if name.startswith(_PACKAGE)), None)
    return "" if op is None or module is None else f"{op}: {module} does not take it"


def _operator(frame: FrameType) -> Op | None:
    """Find an operator among the local variables of a frame, first the one that is called so."""
    from luciole.ir import Op

    names = frame.f_locals
    return next((v for v in (names.get("op"), *names.values()) if isinstance(v, Op)), None)
