"""What accuracy measurements are kept in: widths, rows, tables and a plot."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from luciole.ir import LucioleError
from luciole.lquantizer import Choice
from luciole.tools.console import size_text

FLOAT = "float"


@dataclass(frozen=True)
class Width:
    """Bits of weights and inputs."""

    weights: int
    inputs: int

    def __str__(self) -> str:
        if self.weights == self.inputs:
            return f"K={self.weights}"
        return f"w{self.weights}a{self.inputs}"

    @property
    def choice(self) -> Choice:
        """The same for the quantizer."""
        return Choice(self.inputs, self.weights)

    @classmethod
    def parse(cls, text: str) -> Width:
        """From "3" or "w2a4". Raises LucioleError for anything else."""
        found = re.fullmatch(r"(\d)|w(\d)a(\d)", text)
        if found is None:
            raise LucioleError(f"{text!r} is no width: write 3, or w2a4 for weights and inputs")
        both, weights, inputs = found.groups()
        return cls(int(weights or both), int(inputs or both))


@dataclass(frozen=True)
class Row:
    """One quantized model: share of right answers in percent, bytes of its file, seconds to make
    it. ``width`` is None for the float model.
    """

    network: str
    method: str
    width: str | None
    seed: int
    top1: float
    bytes: int
    seconds: float


def tables(rows: Sequence[Row], network: str) -> list[tuple[str, list[list[str]]]]:
    """Titles and tables of one network: top-1 with its spread, mean seconds, file size."""
    own = [row for row in rows if row.network == network]
    floats = [f"{row.top1:.2f} %, {size_text(row.bytes)}" for row in own if row.width is None]
    float_text = f" (float {', '.join(floats)})" if floats else ""
    contents = {
        f"{network}{float_text}: top-1 in %, mean +- standard deviation": _top1,
        f"{network}: seconds, mean": lambda cell: f"{fmean(r.seconds for r in cell):.1f}",
        f"{network}: file size": lambda cell: size_text(cell[0].bytes),
    }
    return [(title, _grid(own, text)) for title, text in contents.items()]


def _top1(cell: Sequence[Row]) -> str:
    shares = [row.top1 for row in cell]
    spread = f" +- {stdev(shares):.2f}" if len(shares) > 1 else ""
    return f"{fmean(shares):.2f}{spread}"


def _grid(rows: Sequence[Row], text: Callable[[Sequence[Row]], str]) -> list[list[str]]:
    """Methods down, widths across, both in the order in which they appear."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.width is not None:
            cells.setdefault((row.method, row.width), []).append(row)
    methods = list(dict.fromkeys(method for method, _ in cells))
    widths = list(dict.fromkeys(width for _, width in cells))
    body = [
        [method, *(text(cells[method, w]) if (method, w) in cells else "-" for w in widths)]
        for method in methods
    ]
    return [["method", *widths], *body]


def markdown(grid: Sequence[Sequence[str]]) -> str:
    """A table as documents have it."""
    lines = [" | ".join(row) for row in grid]
    lines.insert(1, "|".join("---" for _ in grid[0]))
    return "\n".join(lines)


def figure_type() -> Any:
    """matplotlib's Figure. Raises LucioleError where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LucioleError("--plot needs matplotlib: pip install matplotlib") from None
    return Figure


def plot(rows: Sequence[Row], path: Path) -> None:
    """Accuracy against file size, one picture for each network and one line for each method.

    Raises LucioleError where matplotlib is missing.
    """
    networks = list(dict.fromkeys(row.network for row in rows))
    figure = figure_type()(figsize=(6.4 * len(networks), 4.8), layout="constrained")
    for place, network in enumerate(networks):
        axes = figure.add_subplot(1, len(networks), place + 1)
        for label, points in _lines([row for row in rows if row.network == network]).items():
            sizes, shares = zip(*((size, share) for size, share, _ in points), strict=True)
            axes.plot(sizes, shares, marker="o", label=label)
            for size, share, width in points:
                axes.annotate(width, (size, share), fontsize=6)
        axes.set(title=network, xlabel="file size in KB", ylabel="top-1 in %", xscale="log")
        axes.legend(fontsize=7)
    figure.savefig(path)


def _lines(rows: Sequence[Row]) -> dict[str, list[tuple[float, float, str]]]:
    """Kilobytes, mean accuracy and width by method, smallest file first."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row.method, row.width or ""), []).append(row)
    lines: dict[str, list[tuple[float, float, str]]] = {}
    for (method, width), cell in cells.items():
        point = (cell[0].bytes / 1000, fmean(row.top1 for row in cell), width)
        lines.setdefault(method, []).append(point)
    return {method: sorted(points) for method, points in lines.items()}
