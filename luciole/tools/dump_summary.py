"""``circle-dump --summary``: a model on a page of a terminal."""

from __future__ import annotations

from luciole.ir.text.summary import Summary
from luciole.tools.common import console

_WIDE = 100


def print_summary(page: Summary) -> None:
    """Print the page for a terminal."""
    for line in page.lines():
        console.show(line)
    console.show()
    console.print_table(page.kind_rows())
    if page.layers:
        console.show()
        wide = console.columns() >= _WIDE
        console.print_table(console.fitted(page.layer_rows(wide)))
