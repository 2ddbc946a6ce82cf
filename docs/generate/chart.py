"""Draw accuracy against bytes as SVG, from the figures in ``docs/assets/accuracy.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parents[1] / "assets"
FIGURES, DRAWING = ASSETS / "accuracy.json", ASSETS / "accuracy.svg"

WIDTH, HEIGHT = 900, 400
LEFT, TOP, PANEL, TALL, GAP = 56, 76, 370, 224, 72
STYLE = """
.paper { fill: #fff; } text { fill: #333; font: 12px system-ui, sans-serif; }
text { paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.title { font-weight: 600; font-size: 13px; } .note { fill: #666; }
.axis { stroke: #888; fill: none; } .grid { stroke: #8884; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #16191f; } text { fill: #ddd; stroke: #16191f; } .note { fill: #999; }
}"""

_MIDDLE, _START, _END = "middle", "start", "end"
_BESIDE = {"above": (0, -9, _MIDDLE), "below": (0, 19, _MIDDLE)}
_BESIDE |= {"left": (-9, 4, _END), "right": (9, 4, _START)}


def chart(figures: Mapping[str, Any]) -> str:
    """Draw a panel for each network, and what the marks stand for below them."""
    tools = {tool["key"]: tool for tool in figures["tools"]}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(figures["what"])}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    for number, network in enumerate(figures["networks"]):
        parts += _panel(network, tools, LEFT + number * (PANEL + GAP))
    parts += _legend(figures["tools"])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(network: Mapping[str, Any], tools: Mapping[str, Any], left: float) -> Iterator[str]:
    low, high = network["kilobytes"]
    least, most = network["percent"]

    def place(kilobytes: float, percent: float) -> tuple[float, float]:
        x = left + PANEL * (kilobytes - low) / (high - low)
        return round(x, 1), round(TOP + TALL * (most - percent) / (most - least), 1)

    yield text_at(left, 26, network["name"], "title")
    yield text_at(left, 44, network["float"], "note")
    yield from _axes(network, place)
    for key, label, kilobytes, percent, beside in network["points"]:
        tool, (x, y) = tools[key], place(kilobytes, percent)
        told = f"{tool['name']}, {label}: {percent} % in {kilobytes} KB"
        yield f"<g><title>{escape(told)}</title>{mark(tool, x, y)}</g>"
        if beside:
            right, down, anchor = _BESIDE[beside]
            yield text_at(x + right, y + down, label, anchor=anchor)


def _axes(network: Mapping[str, Any], place: Any) -> Iterator[str]:
    low, high = network["kilobytes"]
    least, most = network["percent"]
    step = 0.5 if most - least < 5 else 5
    percent = step * -(-least // step)
    while percent <= 100:
        (x, y), (end, _) = place(low, percent), place(high, percent)
        yield f'<path class="grid" d="M{x} {y}H{end}"/>'
        yield text_at(x - 6, y + 4, f"{percent:g} %", anchor=_END)
        percent += step
    (x, y), (end, _) = place(low, least), place(high, least)
    yield f'<path class="axis" d="M{x} {TOP}V{y}H{end}"/>'
    yield text_at(x, TOP - 6, "answers that stay", "note")
    yield text_at(end, y - 6, "size of the file", "note", _END)
    for kilobytes in range(low, high + 1, 50 if high - low > 100 else 20):
        yield text_at(place(kilobytes, least)[0], y + 18, f"{kilobytes} KB", anchor=_MIDDLE)


def mark(tool: Mapping[str, str], x: float, y: float) -> str:
    """Draw the mark of a tool around a point."""
    shapes = {
        "circle": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
        "square": "m-4.5-4.5h9v9h-9z",
        "diamond": "m0-6l6 6l-6 6l-6-6z",
        "triangle": "m0-6l6 10h-12z",
        "cross": "m-5-5l10 10m0-10l-10 10",
    }
    paint = f'stroke="{tool["colour"]}" stroke-width="2.5" fill="none"'
    if tool["shape"] != "cross":
        paint = f'fill="{tool["colour"]}"'
    return f'<path {paint} d="M{x} {y}{shapes[tool["shape"]]}"/>'


def _legend(tools: Sequence[Mapping[str, str]]) -> Iterator[str]:
    x, y = LEFT, HEIGHT - 46
    for tool in tools:
        yield mark(tool, x, y - 4)
        yield text_at(x + 12, y, tool["name"])
        x += 34 + 7 * len(tool["name"])
    note = "answers that stay are those of the float network; 2/4: bits of weights / of inputs"
    yield text_at(LEFT - 5, HEIGHT - 18, note, "note")


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = _START) -> str:
    """Write a text at a place."""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def figures() -> dict[str, Any]:
    """Read the figures and where they come from."""
    content: dict[str, Any] = json.loads(FIGURES.read_text("utf-8"))
    return content
