"""Read the shapes that people type, for all programs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.ir import Shape


def parse_shape(text: str) -> Shape:
    """Read ``1,?,64`` or ``[1,?,64]``; ``?`` and -1 are open. Raises ArgumentTypeError."""
    words = [w.strip() for w in text.strip().removeprefix("[").removesuffix("]").split(",")]
    return () if words == [""] else tuple(_extent(word, text) for word in words)


def parse_closed_shapes(text: str) -> list[tuple[int, ...]]:
    """Read ``1,28,28:1,10``: a shape for each input in order, without open extents. Raises
    ArgumentTypeError.
    """
    shapes = [parse_shape(part) for part in text.split(":")]
    known = [tuple(n for n in shape if n is not None) for shape in shapes]
    if known != shapes:
        raise argparse.ArgumentTypeError(f"{text!r}: no extent may be open here")
    return known


def _extent(word: str, text: str) -> int | None:
    if word in ("?", "-1"):
        return None
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: a shape is written as 1,32,32,3, numbers from 1 on; ? is an open one"
        )
    return int(word)
