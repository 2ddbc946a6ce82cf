"""Texts of a drawing: how wide they are, how they are shortened, how numbers are written."""

from __future__ import annotations

import math
import unicodedata

from luciole.ir import Shape
from luciole.ir.text.common import one_line
from luciole.ir.value import MOST_AXES

LONGEST_NAME = 400
"""Characters of a name that the page shows."""

SIZE = 12.0
"""Pixels of the drawing's letters."""

TIMES = "\N{MULTIPLICATION SIGN}"

_WIDTHS = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 "
    "556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 "
    "1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 "
    "667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 "
    "333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 "
    "556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_ASCII = dict(zip(map(chr, range(32, 127)), map(int, _WIDTHS.split()), strict=True))
"""Thousandths of the letter size: Helvetica's, which Arial and Liberation Sans share."""


def width_of(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Estimate how many pixels a text takes."""
    total = sum(_ASCII.get(c) or _other(c) for c in text)
    return total * size / 1000 * (1.09 if bold else 1.02)


def _other(char: str) -> int:
    return 1000 if unicodedata.east_asian_width(char) in "WF" else 620


def fitted(text: str, width: float, size: float = SIZE) -> str:
    """Cut off a text, with an ellipsis, where it would become wider."""
    if len(text) <= width and width_of(text, size) <= width:
        return text
    text = text[: max(int(width), 0)]  # no character is narrower than a pixel
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def wrapped(text: str, width: float, size: float = SIZE) -> list[str]:
    """Break a text into lines that are no wider: between words, and inside a word that alone is
    wider.
    """
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".lstrip()
        if width_of(joined, size) <= width:
            lines[-1] = joined
            continue
        lines.append("")
        for letter in word:
            if lines[-1] and width_of(lines[-1] + letter, size) > width:
                lines.append("")
            lines[-1] += letter
    return [line for line in lines if line]


def shown_name(name: str) -> str:
    """Write a name as people see it: one line, nothing invisible, never empty."""
    return one_line(name, LONGEST_NAME) or "(no name)"


def dims(shape: Shape) -> str:
    """Write extents with multiplication signs between, ``?`` for an unknown one; nothing for a
    number.
    """
    if len(shape) > MOST_AXES:
        return f"{len(shape)} axes"
    return TIMES.join("?" if n is None else str(n) for n in shape)


def rounded(number: float) -> float | None:
    """Round a number to six digits, as JSON takes it; None for NaN and infinity."""
    return float(f"{number:.6g}") if math.isfinite(number) else None
