"""One offline page of a search: the front, how it grew, and what each layer is in each file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.lquantizer.search.result import SearchResult
    from luciole.lquantizer.search.search import Found

_WIDE, _HIGH, _LEFT, _TOP, _BELOW = 760, 360, 70, 14, 44
_CELL, _LINE = 64, 22
_COLOURS = {"searched": "#0a7d5a", "uniform": "#c0392b", "greedy": "#2c6fbb", "files": "#111"}
_STYLE = "body{font-family:sans-serif;max-width:62em;margin:2em auto}td,th{padding:2px 10px}"

Point = tuple[float, float, str]
"""Where a mark is, and what is told of it."""


def page(found: SearchResult, model: str) -> str:
    """Write the page of what was found of a model, without anything from elsewhere."""
    title = f"Search of {escape(model)}"
    parts = [
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>",
        f"<h1>{title}</h1><p>{len(found.evaluated)} networks evaluated, {found.failed} failed; "
        f"the float network has {found.float_network.bytes:,} bytes.</p>",
        "<h2>Loss against file size</h2>",
        plot(_groups(found), "bytes", "loss"),
        "<h2>Files</h2>",
        _table(found),
        "<h2>At the sizes of uniform networks</h2>",
        _against(found),
        "<h2>What each layer is in each file</h2>",
        heat_map(found),
        "<h2>Hypervolume by evaluation</h2>",
        plot({"searched": _growth(found)}, "evaluations", "share of the box"),
    ]
    return "\n".join(parts) + "\n"


def _growth(found: SearchResult) -> list[Point]:
    return [(n, v, f"{n}: {v:.4f}") for n, v in enumerate(found.hypervolumes(), 1)]


def _groups(found: SearchResult) -> dict[str, list[Point]]:
    """Group networks by where they are from; files and uniform ones are full fits."""
    return {
        "searched": [_point(one) for one in found.evaluated],
        "uniform": [_point(one) for one in found.uniform.values()],
        "greedy": [_point(one) for one in found.greedy],
        "files": [_point(file.found) for file in found.front],
    }


def _point(one: Found) -> Point:
    return one.bytes, one.loss, f"{one.bytes:,} B, loss {one.loss:.4f}: {' '.join(one.candidate)}"


def plot(groups: dict[str, list[Point]], across: str, up: str) -> str:
    """Draw points as SVG, a colour for each group, both axes from their least to their most."""
    points = [point for group in groups.values() for point in group]
    if not points:
        return "<p>nothing</p>"
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    marks = [
        f'<circle cx="{_scaled(x, xs, _LEFT, _WIDE - 10):.1f}" '
        f'cy="{_scaled(y, ys, _HIGH - _BELOW, _TOP):.1f}" r="4" fill="{_COLOURS[name]}">'
        f"<title>{escape(text)}</title></circle>"
        for name, group in groups.items()
        for x, y, text in group
    ]
    return _svg(_WIDE, _HIGH, [*_axes(xs, ys, across, up), *marks, *_legend(groups)])


def _scaled(value: float, values: Sequence[float], low: float, high: float) -> float:
    least, most = min(values), max(values)
    return low + (high - low) * ((value - least) / ((most - least) or 1.0))


def _axes(xs: Sequence[float], ys: Sequence[float], across: str, up: str) -> list[str]:
    bottom = _HIGH - _BELOW
    ends = [(min(xs), _LEFT), (max(xs), _WIDE - 60)]
    texts = [_text(x, bottom + 18, f"{value:,.0f}") for value, x in ends]
    texts += [_text(4, y, f"{value:.3g}") for value, y in ((min(ys), bottom), (max(ys), _TOP + 8))]
    texts += [_text(_WIDE // 2, _HIGH - 8, across), _text(4, _HIGH // 2, up)]
    lines = [(_LEFT, bottom, _WIDE - 10, bottom), (_LEFT, _TOP, _LEFT, bottom)]
    drawn = [f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="#999"/>' for a, b, c, d in lines]
    return drawn + texts


def _legend(groups: Iterable[str]) -> list[str]:
    named = [(_WIDE - 110, _TOP + 16 * n, name, _COLOURS[name]) for n, name in enumerate(groups, 1)]
    marks = [
        f'<circle cx="{x - 10}" cy="{y - 4}" r="4" fill="{colour}"/>' for x, y, _, colour in named
    ]
    return marks + [_text(x, y, name) for x, y, name, _ in named]


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _svg(width: int, height: int, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg {size} font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'


def heat_map(found: SearchResult) -> str:
    """Draw a row for each file and a column for each layer, the wider its weights the darker."""
    left = 150
    names = [_text(left + _CELL * n, 14, name[-9:]) for n, name in enumerate(found.layers)]
    weights = [_text(left + _CELL * n, 28, f"{w:,}") for n, w in enumerate(found.weights)]
    rows = [part for row, file in enumerate(found.front) for part in _row(left, row, file.found)]
    width, height = left + _CELL * len(found.layers), 40 + _LINE * len(found.front)
    return _svg(width, height, [_text(4, 28, "weights"), *names, *weights, *rows])


def _row(left: int, row: int, one: Found) -> list[str]:
    y = 36 + _LINE * row
    parts = [_text(4, y + 15, f"{one.bytes:,} B  {one.loss:.3f}")]
    for n, option in enumerate(one.candidate):
        x, shade = left + _CELL * n, _shade(option)
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_LINE - 2}" '
            f'fill="rgb({shade},{shade},255)"/>'
        )
        parts.append(_text(x + 3, y + 15, option))
    return parts


def _shade(option: str) -> int:
    bits = int(option[1]) if option[0] == "w" and option[1].isdigit() else 6
    return 250 - 20 * bits


def _table(found: SearchResult) -> str:
    """List the files, and what the bytes to the next one buy."""
    lines = ["<table><tr><th>file<th>bytes<th>loss<th>agreement<th>us<th>next kilobyte buys"]
    following: list[Found | None] = [*(file.found for file in found.front[1:]), None]
    for file, then in zip(found.front, following, strict=True):
        one = file.found
        agreement = "" if one.agreement is None else f"{100 * one.agreement:.2f} %"
        cells = (f"{one.bytes:,}", f"{one.loss:.4f}", agreement, f"{one.us:.0f}", _buys(one, then))
        name = escape(file.path.name)
        lines.append(f'<tr><td><a href="{name}">{name}</a>' + "".join(f"<td>{c}" for c in cells))
    return "\n".join(lines) + "</table>"


def _buys(one: Found, then: Found | None) -> str:
    if then is None or then.bytes <= one.bytes:
        return ""
    return f"{1000 * (one.loss - then.loss) / (then.bytes - one.bytes):.4f} less loss"


def _against(found: SearchResult) -> str:
    """List the uniform networks beside the best file that is no larger, both fitted in full."""
    lines = ["<table><tr><th>everywhere<th>bytes<th>loss<th>best no larger<th>loss"]
    for name, one in sorted(found.uniform.items(), key=lambda item: item[1].bytes):
        files = [file.found for file in found.front if file.found.bytes <= one.bytes]
        best = sorted(files, key=lambda file: file.loss)[:1]
        cells = [escape(name)]
        for both in (one, *best):
            cells += [f"{both.bytes:,}", f"{both.loss:.4f}"]
        lines.append("<tr>" + "".join(f"<td>{cell}" for cell in cells))
    return "\n".join(lines) + "</table>"
