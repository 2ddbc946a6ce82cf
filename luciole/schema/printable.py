"""Untrusted texts on a terminal and in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str) -> str:
    """Escape a text so that it stays on its line and does nothing to a terminal.

    Characters that print stand as they are; all others (control characters, line separators, marks
    that turn the writing direction, bytes that are no UTF-8) as Python escapes.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(text: str, most: int = 200) -> str:
    """Cut a text as a sentence may quote it: to the beginning of one that is longer than
    ``most``.
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def quoted(text: object) -> str:
    """Quote a text or a number of a file as Python writes it, shortened."""
    return shorten(repr(text))


def all_quoted(names: Iterable[str]) -> str:
    """Quote names as a sentence lists them."""
    return shorten(", ".join(map(repr, names)), 1000) or "nothing"


def listed(words: Iterable[str], last: str = "or") -> str:
    """Join words as a sentence lists them: "a, b or c"."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def counted(count: int, what: str) -> str:
    """Count things as a sentence does: "1 graph", "2 graphs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
