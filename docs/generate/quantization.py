"""Draw how learned levels stand for numbers, in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import exp

from docs.generate.graph import svg

OFFSET, BASIS = 0.05, (0.52, 0.24)
"""An offset and two basis elements, which give four levels."""

WIDTH, BASE, HIGH, REACH = 640, 150, 110, 1.25
_BARS = 41


def levels() -> str:
    """Draw numbers as a histogram, the four levels that stand for them, and the thresholds."""
    signs = list(product((-1, 1), repeat=len(BASIS)))
    chosen = sorted((OFFSET + s * BASIS[0] + t * BASIS[1], (s, t)) for s, t in signs)
    marks = [number for number, _ in chosen]
    parts = [
        f'<svg class="graph" role="img" aria-label="Four levels over the numbers" width="{WIDTH}" '
        f'viewBox="0 0 {WIDTH} 210">',
        *_bars(),
    ]
    for low, high in pairwise(marks):
        x = _place((low + high) / 2)
        parts.append(f'<path class="threshold" d="M{x} 30V{BASE}"/>')
    for number, (first, second) in chosen:
        x = _place(number)
        parts.append(f'<path class="level" d="M{x} 22V{BASE}"/>')
        bits = "".join("1" if sign > 0 else "0" for sign in (second, first))
        parts.append(f'<text class="name" x="{x}" y="{BASE + 22}">{bits}</text>')
        words = f"o {'+' if first > 0 else '-'} a1 {'+' if second > 0 else '-'} a2"
        parts.append(f'<text class="note" x="{x}" y="{BASE + 42}">{words}</text>')
    return "\n".join([*parts, "</svg>"])


def _bars() -> Iterator[str]:
    """Draw how often numbers occur: two hills, as weights have."""
    for number in range(_BARS):
        x = -REACH + 2 * REACH * number / (_BARS - 1)
        share = exp(-((x - 0.1) ** 2) / 0.18) + 0.35 * exp(-((x + 0.65) ** 2) / 0.03)
        tall = round(HIGH * share / 1.1, 1)
        left, top = _place(x) - 6, BASE - tall
        yield f'<rect x="{left:.1f}" y="{top:.1f}" width="11" height="{tall}"/>'


def _place(number: float) -> float:
    return round(WIDTH * (number + REACH) / (2 * REACH), 1)


def walk() -> str:
    """Draw the way of one layer from its float form to the file."""
    lines = {
        "records": ("Your records", "unlabelled, some held back"),
        "float": ("The float network", "what the layer should give"),
        "before": ("The layers before", "already quantized"),
        "fit": ("Fit of one layer", "levels, codes and bias"),
        "next": ("The next layer", "sees what this one gives"),
        "file": ("The file's bytes", "written, read back, run"),
        "proof": ("Proof", "on the records held back"),
    }
    arrows = {
        "records": {"float", "before"},
        "float": {"fit"},
        "before": {"fit"},
        "fit": {"next"},
        "next": {"file"},
        "file": {"proof"},
    }
    return svg(lines, arrows, "From records to a proved file, one layer after the other")
