"""The drawing of a graph as an SVG file, written without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from luciole.drawing.nodes import BAND, HEADER, LABEL, MARGIN, PADDING, ROW
from luciole.drawing.palette import CATEGORIES, PLAIN, bits_colour
from luciole.drawing.text import width_of, wrapped

Json = dict[str, Any]

EDGE = 40
"""Room around the drawing, in pixels."""

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
_INK, _PAPER, _LINE, _FAINT = "#1c2530", "#ffffff", "#8b95a3", "#5a6575"
_WRONG = "#b3261e"
_LINE_HEIGHT = 16
_MARKS = {"error": _WRONG, "warning": "#a15c00"}


def svg(graph: Json, direction: str, title: str, by: str = "bits", wrong: str | None = None) -> str:
    """Draw a graph of a document as one SVG file, ``direction`` vertical or horizontal.

    Colours are by weight bits, or by what operators are for (``by`` is "kind"). Groups that the
    page would show closed are closed. ``wrong`` is what a damaged file is refused for.
    """
    level = (graph["groups"]["root"] if graph["closed"] else graph["flat"])[direction]
    width, height = (round(n + 2 * EDGE) for n in level["size"])
    errors = wrapped(wrong, width - 2 * MARGIN) if wrong is not None else []
    above = max(len(errors) - 1, 0) * _LINE_HEIGHT
    top, height = -EDGE - above, height + above
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="{-EDGE} {top} {width} {height}" font-family="{FONT}" font-size="12" '
        f'role="img" aria-label="{escape(title)}">'
    )
    lines = [head, f"<title>{escape(title)}</title>"]
    lines.append(f'<rect x="{-EDGE}" y="{top}" width="100%" height="100%" fill="#f6f7f9"/>')
    lines += _wrong(wrong, errors) if wrong is not None else ()
    lines += _edges(graph, level, direction)
    for reference, x, y in level["items"]:
        if isinstance(reference, int):
            lines += _node(graph["nodes"][reference], x, y, by)
        else:
            lines += _group(graph["groups"][reference], x, y)
    return "\n".join([*lines, "</svg>", ""])


def _wrong(wrong: str, lines: list[str]) -> Iterator[str]:
    """Write lines above the drawing, the last one close to it, and one for whom it is read to."""
    yield f"<desc>{escape(wrong)}</desc>"
    first = MARGIN - EDGE / 2 - (len(lines) - 1) * _LINE_HEIGHT
    for place, line in enumerate(lines):
        yield _text(MARGIN - EDGE, first + place * _LINE_HEIGHT, line, _WRONG)


def _edges(graph: Json, level: Json, direction: str) -> Iterator[str]:
    yield f'<g fill="none" stroke="{_LINE}" stroke-width="1.3">'
    for _, _, _, points in level["edges"]:
        yield f'<path d="{_curve(points, direction)}"/>'
    yield "</g>"
    labelled: set[int] = set()
    for source, _, tensors, points in level["edges"]:
        yield _arrow(points, direction)
        if isinstance(level["items"][source][0], int) and source not in labelled:
            labelled.add(source)
            yield _label(graph["tensors"][tensors[0]]["text"], points, direction)


def _curve(points: list[float], direction: str) -> str:
    """Join points by curves that leave and arrive in the drawing's direction."""
    parts = [f"M{points[0]:g} {points[1]:g}"]
    for k in range(2, len(points), 2):
        x0, y0, x1, y1 = points[k - 2 : k + 2]
        if direction == "vertical":
            middle = (y0 + y1) / 2
            parts.append(f"C{x0:g} {middle:g} {x1:g} {middle:g} {x1:g} {y1:g}")
        else:
            middle = (x0 + x1) / 2
            parts.append(f"C{middle:g} {y0:g} {middle:g} {y1:g} {x1:g} {y1:g}")
    return "".join(parts)


def _arrow(points: list[float], direction: str) -> str:
    x, y = points[-2:]
    back = "l-3.5 -7h7z" if direction == "vertical" else "l-7 -3.5v7z"
    return f'<path d="M{x:g} {y:g}{back}" fill="{_LINE}"/>'


def _label(text: str, points: list[float], direction: str) -> str:
    if not text:
        return ""
    x, y = points[:2]
    where = (
        f'x="{x:g}" y="{y + LABEL + 4:g}" text-anchor="middle"'
        if direction == "vertical"
        else f'x="{x + 6:g}" y="{y - 4:g}"'
    )
    halo = 'paint-order="stroke" stroke="#f6f7f9" stroke-width="4"'
    return f'<text {where} font-size="{LABEL:g}" fill="{_FAINT}" {halo}>{escape(text)}</text>'


def _node(node: Json, x: float, y: float, by: str) -> Iterator[str]:
    width, height = node["size"]
    left, top = x - width / 2, y - height / 2
    is_end = node["what"] != "op"
    fill = CATEGORIES["io"] if is_end else _colour(node, by)
    yield f'<g transform="translate({left:g} {top:g})"><title>{escape(node["name"])}</title>'
    yield (
        f'<rect width="{width}" height="{height}" rx="{13 if is_end else 5}" fill="{_PAPER}" '
        f'stroke="{_LINE}"/>'
    )
    yield _band(fill, width, HEADER, 13 if is_end else 5, height > HEADER)
    yield from _writing(node, width)
    if "activation" in node:
        yield from _activation(node["activation"], width, height)
    if "mark" in node:
        yield (
            f'<rect x="-2" y="-2" width="{width + 4}" height="{height + 4}" rx="7" fill="none" '
            f'stroke="{_MARKS[node["mark"]]}" stroke-width="2.5"/>'
        )
    yield "</g>"


def _writing(node: Json, width: float) -> Iterator[str]:
    """Write the title, the badge and the constants of a box."""
    if node["what"] != "op":
        yield _text(width / 2, HEADER - 9, node["shown"], _INK, True, 'text-anchor="middle"')
    else:
        yield _text(MARGIN, HEADER - 9, node["shown"], "#ffffff", bold=True)
    if "badge" in node:
        anchor = 'text-anchor="end"'
        yield _text(width - MARGIN, HEADER - 9.5, node["badge"], "#ffffff", True, anchor, 10)
    for number, (name, text) in enumerate(node["rows"], 1):
        line, bold = HEADER + number * ROW - 2, f'<tspan font-weight="bold">{escape(name)}</tspan>'
        wide = width_of(name, bold=True) + width_of(f" {text}")
        yield (
            f'<text x="{MARGIN:g}" y="{line:g}" fill="{_INK}" {_kept(wide)}>{bold} '
            f"{escape(text)}</text>"
        )


def _activation(name: str, width: float, height: float) -> Iterator[str]:
    colour = CATEGORIES["activation"]
    top = height - BAND
    yield (
        f'<path d="M0 {top:g}h{width}v{BAND - 5:g}a5 5 0 0 1 -5 5h-{width - 10}a5 5 0 0 1 -5 -5z" '
        f'fill="{colour}"/>'
    )
    yield _text(MARGIN, height - PADDING, name, "#ffffff")


def _band(fill: str, width: float, height: float, radius: float, flat_below: bool) -> str:
    """Draw the coloured title: round above, and below too when nothing follows."""
    if not flat_below:
        return f'<rect width="{width}" height="{height:g}" rx="{radius}" fill="{fill}"/>'
    corner = f"a{radius} {radius} 0 0 1"
    return (
        f'<path d="M0 {height:g}v-{height - radius:g}{corner} {radius} -{radius}'
        f'h{width - 2 * radius:g}{corner} {radius} {radius}v{height - radius:g}z" fill="{fill}"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    fill: str,
    bold: bool = False,
    attributes: str = "",
    size: int = 12,
) -> str:
    weight, wide = ' font-weight="bold"' if bold else "", _kept(width_of(text, size, bold))
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}"{weight} {wide} {attributes}>'
        f"{escape(text)}</text>"
    )


def _kept(width: float) -> str:
    """Keep a text to the width that its box was measured for, whatever letters there are."""
    return f'textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'


def _colour(node: Json, by: str) -> str:
    if by == "kind":
        return CATEGORIES[node["category"]]
    return bits_colour(node["bits"][0]) if "bits" in node else PLAIN


def _group(group: Json, x: float, y: float) -> Iterator[str]:
    width, height = group["box"]
    yield f'<g transform="translate({x - width / 2:g} {y - height / 2:g})">'
    yield f"<title>{escape(group['title'])}</title>"
    yield (
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#e9edf3" stroke="{_LINE}" '
        'stroke-dasharray="4 3"/>'
    )
    yield _text(MARGIN, 18, group["shown"], _INK, bold=True)
    yield _text(MARGIN, 18 + ROW, group["line"], _FAINT)
    yield "</g>"
