"""What accuracy measurements are kept in: widths, rows, tables and a plot."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from luciole.ir import LucioleError, Model
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.tools.common.console import size_text

FLOAT = "float"
_ACROSS = 3
"""Pictures side by side."""
_SHORT = 30
"""Axes that span less have numbers between the powers of ten, too."""
_NEAR = 0.06
"""Points that differ by less than this share of size and of error are labelled together."""
_COLOURS = ("fit", "published", "fit + fine-tuning", "affine", "affine + bias")
"""Methods that look the same in every picture."""
_TOP1 = "top-1"


@dataclass(frozen=True)
class Width:
    """Bits of weights and inputs (None: inputs stay float); with ``dense`` also of the dense layers
    behind convolutions, which are spared otherwise.
    """

    weights: int
    inputs: int | None
    dense: bool = False

    def __str__(self) -> str:
        behind = "+dense" if self.dense else ""
        if self.inputs is None:
            return f"w{self.weights}{behind}"
        if self.weights == self.inputs:
            return f"K={self.weights}{behind}"
        return f"w{self.weights}a{self.inputs}{behind}"

    def config(self, model: Model) -> dict[str, Any]:
        """The same for the quantizer."""
        names = [op.name for op in model.graph.ops if isinstance(op, FullyConnected)]
        bits: dict[str, Any] = {"weight_bits": self.weights}
        bits |= {"weights_only": True} if self.inputs is None else {"input_bits": self.inputs}
        return {**bits, "layers": [{"names": names}] if self.dense else []}

    @classmethod
    def parse(cls, text: str) -> Width:
        """From "3", "w2a4", "w2" or "2+dense". Raises LucioleError for anything else."""
        found = re.fullmatch(r"(?:(\d)|w(\d)(?:a(\d))?)(\+dense)?", text)
        if found is None:
            raise LucioleError(
                f"{text!r} is no width: write 3, or w2a4 for weights and inputs, w2 for weights "
                "only, +dense behind it for dense layers behind convolutions too"
            )
        both, weights, inputs, dense = found.groups()
        own = both or inputs
        return cls(int(weights or both), int(own) if own else None, dense is not None)


@dataclass(frozen=True)
class Row:
    """One quantized model: its score (top-1 in percent, or what ``metric`` says), bytes of its
    file, seconds to make it. ``width`` is None for the float model.
    """

    network: str
    metric: str
    method: str
    width: str | None
    seed: int
    score: float
    bytes: int
    seconds: float


def tables(rows: Sequence[Row], network: str) -> list[tuple[str, list[list[str]]]]:
    """Titles and tables of one network: scores with their spread, mean seconds, file size."""
    own = [row for row in rows if row.network == network]
    floats = [f"{row.score:.2f} %, {size_text(row.bytes)}" for row in own if row.width is None]
    float_text = f" (float {', '.join(floats)})" if floats else ""
    contents = {
        f"{network}{float_text}: {own[0].metric}, mean +- standard deviation": _scores,
        f"{network}: seconds, mean": lambda cell: f"{fmean(r.seconds for r in cell):.1f}",
        f"{network}: file size": lambda cell: size_text(cell[0].bytes),
    }
    return [(title, _grid(own, text)) for title, text in contents.items()]


def _scores(cell: Sequence[Row]) -> str:
    scores = [row.score for row in cell]
    spread = f" +- {stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{fmean(scores):.2f}{spread}"


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
    """A table as documents have it, its columns aligned."""
    sizes = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        f"| {' | '.join(c.ljust(size) for c, size in zip(row, sizes, strict=True))} |"
        for row in grid
    ]
    lines.insert(1, f"|{'|'.join('-' * (size + 2) for size in sizes)}|")
    return "\n".join(lines)


def figure_type() -> Any:
    """matplotlib's Figure. Raises LucioleError where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise LucioleError("--plot needs matplotlib: pip install matplotlib") from None
    return Figure


def plot(rows: Sequence[Row], path: Path) -> None:
    """Error against file size, one picture for each network: a line for each method through its
    equal widths K, and a hollow mark for each mixed one.

    Raises LucioleError where matplotlib is missing.
    """
    networks = list(dict.fromkeys(row.network for row in rows))
    across = min(len(networks), _ACROSS)
    down = -(-len(networks) // across)
    figure = figure_type()(figsize=(6.4 * across, 4.8 * down), layout="constrained")
    for place, network in enumerate(networks, 1):
        axes = figure.add_subplot(down, across, place)
        _picture(axes, [row for row in rows if row.network == network])
    figure.savefig(path, dpi=120)


def _picture(axes: Any, rows: Sequence[Row]) -> None:
    """Errors, not right answers, on a logarithmic axis: good networks differ little."""
    places = _points(rows)
    for method, points in places.items():
        number = _COLOURS.index(method) if method in _COLOURS else len(_COLOURS)
        colour, marker = f"C{number}", "sovD^P"[number]
        equal = [p for p in points if p.width.startswith("K") and "+" not in p.width]
        mixed = [p for p in points if p not in equal]
        label = method
        for some, style, face in ((equal, "-", colour), (mixed, "", "none")):
            if some:
                sizes, errors = [p.kilobytes for p in some], [p.error for p in some]
                axes.plot(sizes, errors, marker + style, c=colour, mfc=face, label=label, ms=5)
                label = "_unlisted"
    for (size, error), text in _labels(places.get("fit", [])).items():
        axes.annotate(text, (size, error), (4, -9), textcoords="offset points", fontsize=7)
    for row in rows:
        if row.width is None:
            size_text = f"float, {row.bytes / 1000:,.0f} KB"
            axes.axhline(_error(row), c="gray", ls=":", label=size_text)
    _scales(axes, rows[0])
    axes.legend(fontsize=8, loc="best")


def _scales(axes: Any, row: Row) -> None:
    """Titles and logarithmic scales with plain numbers."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    plain = FuncFormatter(lambda number, _: f"{number:g}")
    ylabel = "wrong answers in %" if row.metric.startswith(_TOP1) else row.metric
    axes.set(title=row.network, xlabel="file size in KB", ylabel=ylabel)
    axes.set(xscale="log", yscale="log")
    axes.margins(x=0.1)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    if high < _SHORT * low:
        axes.yaxis.set_minor_formatter(plain)
        axes.tick_params(axis="y", which="minor", labelsize=7)
    axes.grid(alpha=0.3)


def _error(row: Row) -> float:
    return 100 - row.score if row.metric.startswith(_TOP1) else row.score


def _labels(points: Sequence[_Point]) -> dict[tuple[float, float], str]:
    """What to write beside points; those that nearly coincide share a label."""
    labels: dict[tuple[float, float], str] = {}
    for point in points:
        at = (point.kilobytes, point.error)
        near = next(
            (k for k in labels if all(_alike(*pair) for pair in zip(k, at, strict=True))), at
        )
        labels[near] = f"{labels[near]}, {point.width}" if near in labels else point.width
    return labels


def _alike(one: float, other: float) -> bool:
    return abs(one - other) < _NEAR * one


class _Point(NamedTuple):
    """Mean error of a width."""

    kilobytes: float
    error: float
    width: str


def _points(rows: Sequence[Row]) -> dict[str, list[_Point]]:
    """By method, smallest file first; the float network is left out."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.width is not None:
            cells.setdefault((row.method, row.width), []).append(row)
    points: dict[str, list[_Point]] = {}
    for (method, width), cell in cells.items():
        error = fmean(_error(row) for row in cell)
        points.setdefault(method, []).append(_Point(cell[0].bytes / 1000, error, width))
    return {method: sorted(some) for method, some in points.items()}
