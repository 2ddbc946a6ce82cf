"""Show tables, progress and lines to people: tables, progress bars, sizes and times; plain text
without a terminal.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from luciole.schema.columns import aligned
from luciole.schema.columns import shortened as shortened
from luciole.schema.columns import size_text as size_text
from luciole.schema.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from luciole.interpreter.records import Progress, Track

_SHORTEST_NAME, _LONGEST_NAME = 12, 60


def print_table(
    rows: Sequence[Sequence[str]], title: str = "", styles: Mapping[int, str] | None = None
) -> None:
    """Print rows under headings (the first row): drawn on a terminal that is wide enough, aligned
    columns elsewhere.

    ``styles`` are rich's names of colours for columns by their number.
    """
    if sys.stdout.isatty() and _drawn_width(rows) <= columns():
        _print_rich(rows, title, styles or {})
        return
    if title:
        show(title)
    for line in aligned(rows):
        print(line)


def _drawn_width(rows: Sequence[Sequence[str]]) -> int:
    """Count the columns that a drawn table takes: a narrower one would lose digits."""
    widths = [max(len(printable(cell)) for cell in cells) for cells in zip(*rows, strict=True)]
    return sum(widths) + 3 * len(widths) + 1


def _print_rich(rows: Sequence[Sequence[str]], title: str, styles: Mapping[int, str]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(printable(title)) or None, title_justify="left")
    for index, heading in enumerate(rows[0]):
        table.add_column(escape(printable(heading)), style=styles.get(index))
    for row in rows[1:]:
        table.add_row(*(escape(printable(cell)) for cell in row))
    Console().print(table)


def print_json(content: Any) -> None:
    """Print JSON that every reader takes: NaN and infinity become null."""
    print(to_json(content), end="")


def to_json(content: Any) -> str:
    """Write a value as JSON text for a file."""
    import json

    return json.dumps(_finite(content), indent=2, allow_nan=False) + "\n"


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(k): _finite(v) for k, v in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(v) for v in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def show(line: str = "") -> None:
    """Print a line of results on standard output, whatever is in the names that it holds."""
    print(printable(line))


def show_text(text: str) -> None:
    """Print a text of our own, of several lines, on standard output."""
    print(text)


def say(line: str) -> None:
    """Print a message for people on standard error, so that it never mixes with results."""
    print(printable(line), file=sys.stderr)


@contextmanager
def tracked(quiet: bool = False) -> Iterator[Track]:
    """Draw progress bars for long work; silent without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, total: lambda done: None
        return
    from rich.markup import escape

    with _bars() as bars:

        def track(what: str, total: int) -> Progress:
            task = bars.add_task(escape(printable(what)), total=total)
            return lambda done: bars.advance(task, done)

        yield track


def _bars() -> Bars:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def columns() -> int:
    """Measure the width of the terminal; where there is none, nothing needs to be left out."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000


def fitted(rows: Sequence[tuple[str, ...]], whole: bool = False) -> list[tuple[str, ...]]:
    """Cut the first cells of rows so that the table with its borders fits the terminal.

    Without a terminal long names are cut, too, unless they are to be ``whole``.
    """
    if whole and not sys.stdout.isatty():
        return list(rows)
    borders = 3 * len(rows[0]) + 1
    rest = sum(max(map(len, cells)) for cells in list(zip(*rows, strict=True))[1:])
    room = max(_SHORTEST_NAME, min(_LONGEST_NAME, columns() - borders - rest))
    return [(shortened(row[0], room), *row[1:]) for row in rows]


def time_text(microseconds: float) -> str:
    """Write a duration for people."""
    return f"{microseconds:.1f} us" if microseconds < 1000 else f"{microseconds / 1000:.2f} ms"


def part_time_text(microseconds: float) -> str:
    """Write the duration of a part of a run, which may be some nanoseconds."""
    return f"{1000 * microseconds:.0f} ns" if microseconds < 1 else time_text(microseconds)
