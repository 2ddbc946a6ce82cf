"""Draw times beside LiteRT's as SVG, from the figures in ``docs/assets/times.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs.generate.chart import ASSETS, STYLE, text_at

FIGURES, DRAWING = ASSETS / "times.json", ASSETS / "times.svg"

WIDTH, LEFT, TOP, LONG = 900, 250, 58, 490
ROW, GAP, MOST = 20, 30, 3.0
"""Pixels of a bar's row and between networks; the share that a bar of full length is."""

_COLOURS = (
    ("#004d40", "#00796b"),
    ("#00796b", "#26a69a"),
    ("#26a69a", "#80cbc4"),
    ("#80cbc4", "#d5efec"),
)
"""Of each width, by day and by night."""
_NIGHT = "@media (prefers-color-scheme: dark)"


def times(figures: Mapping[str, Any]) -> str:
    """Draw a bar for each width of each network, and a line where LiteRT's int8 time is."""
    networks, bits = figures["networks"], figures["bits"]
    tall = TOP + len(networks) * (len(bits) * ROW + GAP) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img" '
        f'aria-label="{figures["what"]}">',
        f"<style>{STYLE}\n{_fills(0)}\n{_NIGHT} {{ {_fills(1)} }}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{tall}" rx="8"/>',
        text_at(20, 26, figures["what"], "title"),
    ]
    line = round(LEFT + 40 + LONG / MOST, 1)
    parts.append(f'<path class="grid" d="M{line} {TOP - 12}V{tall - 24}"/>')
    parts.append(text_at(line + 6, TOP - 6, "LiteRT int8 = 1", "note"))
    for number, network in enumerate(networks):
        parts += _bars(network, bits, TOP + number * (len(bits) * ROW + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _fills(night: int) -> str:
    return " ".join(f".bar{row} {{ fill: {both[night]}; }}" for row, both in enumerate(_COLOURS))


def _bars(network: Mapping[str, Any], bits: list[int], top: float) -> Iterator[str]:
    yield text_at(20, top + 14, network["name"].replace("->", " → "), "title")
    told = f"int8 {network['int8']:g} us, float32 {network['float32']:g} us"
    yield text_at(20, top + 32, told, "note")
    for row, (width, time) in enumerate(zip(bits, network["luciole"], strict=True)):
        share = time / network["int8"]
        y, length = top + row * ROW, round(LONG * min(share, MOST) / MOST, 1)
        yield f'<rect x="{LEFT + 40}" y="{y}" width="{length}" height="14" class="bar{row}"/>'
        yield text_at(LEFT + 32, y + 12, f"{width} bit", anchor="end")
        yield text_at(LEFT + 46 + length, y + 12, f"{share:.2f} ({time:g} us)")


def figures() -> dict[str, Any]:
    """Read the figures and where they come from."""
    content: dict[str, Any] = json.loads(FIGURES.read_text("utf-8"))
    return content
