"""Draw small graphs of names as SVG that takes its colours from the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from luciole.drawing.layout import Box, Point, layouts

Arrows = Mapping[str, set[str]]
"""Names by the names that they point to."""

PIXELS = 8.5
"""The width of a letter of a box's first line, in pixels."""

SMALL = 6.6
"""The width of a letter of the lines below it."""

LINE, PADDING, EDGE = 18, 12, 4


def reduced(arrows: Arrows) -> dict[str, set[str]]:
    """Leave out each arrow that a way over other names stands for (transitive reduction)."""
    return {
        name: {t for t in targets if not any(t in _behind(o, arrows) for o in targets - {t})}
        for name, targets in arrows.items()
    }


def _behind(name: str, arrows: Arrows) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = arrows.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def svg(lines: Mapping[str, Sequence[str]], arrows: Arrows, title: str) -> str:
    """Draw a box for each name, with its lines of text, above the boxes that it points to.

    Raises ValueError for arrows that form a circle.
    """
    names = list(lines)
    boxes = [_box(lines[name]) for name in names]
    ends = [(names.index(a), names.index(b)) for a in names for b in sorted(arrows.get(a, ()))]
    layout = layouts(boxes, ends)[0]
    width, height = round(layout.width + 2 * EDGE), round(layout.height + 2 * EDGE)
    parts = [
        f'<svg class="graph" role="img" aria-label="{escape(title)}" width="{width}" '
        f'viewBox="{-EDGE} {-EDGE} {width} {height}">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
        *(f'<path class="arrow" d="{_curve(route)}"/>' for route in layout.routes),
    ]
    for name, box, centre in zip(names, boxes, layout.centres, strict=True):
        parts += _drawn(lines[name], box, centre)
    return "\n".join([*parts, "</svg>"])


def _box(lines: Sequence[str]) -> Box:
    first, *rest = lines
    widest = max([PIXELS * len(first), *(SMALL * len(line) for line in rest)])
    return Box(widest + 2 * PADDING, LINE * len(lines) + PADDING)


def _curve(route: Sequence[Point]) -> str:
    """Curves through all points that leave and arrive upright."""
    (x, y), *_ = route
    parts = [f"M{x:.1f} {y:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(route):
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return "".join(parts)


def _drawn(lines: Sequence[str], box: Box, centre: Point) -> Iterator[str]:
    x, y = centre
    left, top = x - box.width / 2, y - box.height / 2
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        'rx="6"/>'
    )
    for number, line in enumerate(lines):
        base = top + PADDING / 2 + LINE * (number + 0.75)
        kind = "name" if number == 0 else "note"
        yield f'<text class="{kind}" x="{x:.1f}" y="{base:.1f}">{escape(line)}</text>'
