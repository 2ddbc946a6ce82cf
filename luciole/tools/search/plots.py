"""Plots of points as SVG, with axes that are linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _BELOW = 760, 388, 70, 14, 26, 54
_STEPS = (1, 2, 5)
_RADII = {"searched": 3.0, "greedy": 7.5, "uniform": 10.0}
"""Rings are wider than what is at the same place, so that all of it is seen."""
_RADIUS = 5.0

Point = tuple[float, float, str]
"""Where a mark is, and its title."""


@dataclass(frozen=True)
class Axis:
    """An axis: what it counts, its ends, and whether it is logarithmic."""

    name: str
    least: float
    most: float
    is_log: bool = False

    @classmethod
    def of(cls, name: str, values: Sequence[float], is_log: bool = False) -> Axis:
        """Reach from the least to the most value; a logarithmic one over 6 decades at the most."""
        least, most = min(values), max(values)
        if is_log:
            most = max(most, 1e-9)
            least = max(least, most * 1e-6)
            return cls(name, least / 1.2, most * 1.2, True)
        room = 0.04 * ((most - least) or abs(most) or 1.0)
        return cls(name, least - room if least else 0.0, most + room)

    def share(self, value: float) -> float:
        """Return the place of a value on the axis, from 0 to 1."""
        if self.is_log:
            place = math.log(max(value, self.least) / self.least)
            return place / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)

    def ticks(self) -> list[float]:
        """Choose round numbers to name."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
            few = _STEPS if len(powers) < 5 else (1,)
            every = (step * 10.0**power for power in powers for step in few)
            return [tick for tick in every if self.least <= tick <= self.most]
        step = self._step()
        first = math.ceil(self.least / step)
        return [n * step for n in range(first, math.floor(self.most / step) + 1)]

    def _step(self) -> float:
        """Choose a round distance of a linear axis's ticks, a quarter of it at the most."""
        size = 10.0 ** math.floor(math.log10((self.most - self.least) / 4))
        return max(s * size for s in _STEPS if s * size <= (self.most - self.least) / 4)

    def named(self, tick: float) -> str:
        """Write a tick with as many digits as tell it from the next."""
        if self.is_log:
            return f"{tick:.0e}".replace("e-0", "e-") if tick < 1e-3 else f"{tick:g}"
        return f"{tick:,.{max(0, -math.floor(math.log10(self._step()) + 1e-9))}f}"


def plot(groups: Mapping[str, Sequence[Point]], across: Axis, up: Axis, line: str = "") -> str:
    """Draw groups of points, one of them as a line besides; each says what it is if pointed at."""
    parts = [*_grid(across, up)]
    if line:
        places = " ".join(f"{_x(across, x):.1f},{_y(up, y):.1f}" for x, y, _ in groups[line])
        parts.append(f'<polyline points="{places}"/>')
    for name, points in groups.items():
        radius = _RADII.get(name, _RADIUS)
        parts += [
            f'<circle class="{name}" cx="{_x(across, x):.1f}" cy="{_y(up, y):.1f}" r="{radius:g}">'
            f"<title>{escape(text)}</title></circle>"
            for x, y, text in points
        ]
    label = f"{up.name} against {across.name}"
    head = f'<svg class="plot" viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{label}">'
    return f"{head}{''.join(parts)}</svg>"


def _x(axis: Axis, value: float) -> float:
    return _LEFT + (_WIDE - _RIGHT - _LEFT) * axis.share(value)


def _y(axis: Axis, value: float) -> float:
    return _HIGH - _BELOW - (_HIGH - _BELOW - _TOP) * axis.share(value)


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    bottom, right = _HIGH - _BELOW, _WIDE - _RIGHT
    for tick in across.ticks():
        x = _x(across, tick)
        yield f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield text(x, bottom + 18, across.named(tick), "middle", "faint")
    for tick in up.ticks():
        y = _y(up, tick)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield text(_LEFT - 8, y + 4, up.named(tick), "end", "faint")
    yield text((_LEFT + right) / 2, _HIGH - 8, across.name, "middle")
    yield text(8, 16, up.name)


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "") -> str:
    """Write a text."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{named}>{escape(content)}</text>'
