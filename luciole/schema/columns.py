"""Write tables as aligned columns, and sizes for people."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.schema.printable import printable


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of cells as lines in which columns begin at the same place."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def size_text(count: int) -> str:
    """Write a number of bytes for people, in thousands as disks count them."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:.2f} MB"


def shortened(name: str, width: int) -> str:
    """Shorten a name in a table: of a long one its end stays, which tells names apart, behind a
    star, so that what is left is a pattern for it.
    """
    name = printable(name)
    return name if len(name) <= width else f"*{name[1 - width :]}"
