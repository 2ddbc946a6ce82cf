"""Draw the format of each layer in each file of a front, as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from luciole.drawing.palette import BITS
from luciole.lquantizer.assignment.layer_format import parse
from luciole.tools.search.plots import text

if TYPE_CHECKING:
    from luciole.lquantizer.search.networks import Found
    from luciole.lquantizer.search.result import SearchResult

_CELL, _LINE, _LEFT, _TOP = 96, 26, 190, 58
_LONGEST = 10


def bits_of(option: str) -> int:
    """Return the bits that an option gives a layer's weights, or where it is about its result only,
    the bits of that.
    """
    if option[:1] in "wa" and option[1:].isdecimal():  # of the published search
        return int(option[1:])
    return parse(option).weights


def heat_map(search: SearchResult) -> str:
    """Draw a row for each file and a column for each layer, in the viewer's colours of bits."""
    parts = [text(4, 20, "layer", kind="faint"), text(4, 40, "weights", kind="faint")]
    for n, (name, weights) in enumerate(zip(search.layers, search.weights, strict=True)):
        short = name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
        x = _LEFT + _CELL * n
        parts.append(f"<g>{text(x, 20, short)}<title>{escape(name)}</title></g>")
        parts.append(text(x, 40, f"{weights:,}", kind="faint"))
    for row, file in enumerate(search.front):
        parts += _row(row, file.found)
    width, height = _LEFT + _CELL * len(search.layers) + 4, _TOP + _LINE * len(search.front)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} role="img" aria-label="widths of layers">{"".join(parts)}</svg>'


def _row(row: int, one: Found) -> Iterator[str]:
    y = _TOP + _LINE * row - 6
    yield text(4, y + 17, f"{one.bytes:,} B")
    yield text(_LEFT - 12, y + 17, f"loss {one.loss:.3g}", "end", "faint")
    for n, option in enumerate(one.candidate):
        x, bits = _LEFT + _CELL * n, bits_of(option)
        colour = BITS[min(known for known in BITS if known >= bits)]
        yield (
            f'<rect x="{x}" y="{y}" width="{_CELL - 3}" height="{_LINE - 3}" rx="3" '
            f'fill="{colour}"/>'
        )
        yield text(x + 6, y + 16, option, kind="on")
