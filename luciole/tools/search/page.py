"""One offline page of a search: the front, how it grew, and what each layer is in each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from luciole.tools.search.heat_map import heat_map
from luciole.tools.search.plots import Axis, Point, plot
from luciole.tools.search.style import STYLE

if TYPE_CHECKING:
    from luciole.lquantizer.search.networks import Found
    from luciole.lquantizer.search.result import FrontFile, SearchResult

_KILOBYTE = 1000
_LOSS = (
    "Loss is the distance from the float network's answers on the records that judge: the "
    "Kullback-Leibler divergence, of outputs that are no probabilities the squared error as a "
    "share of the output's variance. Where labels judge it is the share of wrong answers, where a "
    "metric does the share of the float network's figure that is lost."
)
_FITS = (
    "Uniform networks have one option everywhere, greedy ones are widened layer by layer, each "
    "step where a byte saves most loss. Searched and greedy networks are fitted quickly, to few "
    "records; files and uniform networks in full. So a network may be here twice, with two losses: "
    "that of the file counts."
)
_GROWTH = (
    "The hypervolume is the share of a box of sizes and losses whose points are both larger and "
    "worse than some network so far. The box reaches to a loss of 1 and the float network's bytes. "
    "Where the line is level, more evaluations bring little."
)


def page(search: SearchResult, model: str, viewed: bool = True) -> str:
    """Write the page of a model's search, without anything from elsewhere; ``viewed`` files have
    the viewer's page beside them.
    """
    title = f"Search of {escape(model)}"
    sections = {
        "Loss against file size": _front(search),
        "Files": _wide(_table(search, viewed)),
        "What the next kilobyte buys": _wide(_steps(search)),
        "At the sizes of uniform networks": _wide(_against(search)),
        "Format of each layer in each file": _wide(heat_map(search)),
        "Hypervolume by evaluation": _growth(search),
    }
    parts = (f"<section><h2>{name}</h2>{part}</section>\n" for name, part in sections.items())
    body = "".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<main><h1>{title}</h1><p>{len(search.evaluated):,} networks evaluated, {search.failed} "
        f"failed{_left_out(search)}; the float network has {search.float_network.bytes:,} bytes."
        f"</p>\n{body}</main>\n"
    )


def _wide(content: str) -> str:
    return f'<div class="wide" tabindex="0">{content}</div>'


# ---------------------------------------------------------------------------------- plots
def _front(search: SearchResult) -> str:
    """Plot networks by where they are from; files and uniform ones are full fits. A loss of 0, for
    which a logarithm has no place, is drawn at the axis's end.
    """
    groups: dict[str, list[Point]] = {
        "searched": [_point(one) for one in search.evaluated],
        "uniform": [_point(one) for one in search.uniform.values()],
        "greedy": [_point(one) for one in search.greedy],
        "files": [_point(file.found) for file in search.front],
    }
    points = [point for group in groups.values() for point in group]
    if not points:
        return "<p>nothing</p>"
    across = Axis.of("bytes", [x for x, _, _ in points])
    up = Axis.of("loss", [y for _, y, _ in points if y > 0] or [1.0], is_log=True)
    told = f"<p>{_LOSS}</p><p>{_FITS}</p>"
    return told + _legend(groups) + _wide(plot(groups, across, up, "files"))


def _legend(groups: Mapping[str, Sequence[Point]]) -> str:
    marks = (
        f'<span><i class="{name}"></i>{name} ({len(group)})</span>'
        for name, group in groups.items()
        if group
    )
    return f'<div class="legend">{"".join(marks)}</div>'


def _point(one: Found) -> Point:
    told = f"{one.bytes:,} B, loss {one.loss:.3g}: {' '.join(one.candidate)}"
    return one.bytes, one.loss, told


def _growth(search: SearchResult) -> str:
    grown = [(float(n), v, f"{n}: {v:.4f}") for n, v in enumerate(search.hypervolumes(), 1)]
    if not grown:
        return "<p>nothing</p>"
    across = Axis.of("evaluations", [x for x, _, _ in grown])
    up = Axis.of("share of the box", [y for _, y, _ in grown])
    return f"<p>{_GROWTH}</p>" + _wide(plot({"files": grown}, across, up, "files"))


# --------------------------------------------------------------------------------- tables
def _left_out(search: SearchResult) -> str:
    """Count the networks to begin with that were left out."""
    if not search.unreached:
        return ""
    return f", {search.unreached} of those that a search begins with left out by its budget"


def _table(search: SearchResult, viewed: bool) -> str:
    """List the files, each with a link to it and one to the viewer's page of it."""
    timed = search.float_network.us > 0
    tuned = ["loss before", "agreement before"] if search.is_tuned else []
    devices = list(search.float_network.costs)
    drop, us = [search.unit] if search.unit else [], ["us"] if timed else []
    head = ["file", "bytes", "loss", "agreement", *drop, *tuned, *us, *devices]
    rows = [_cells(file, timed, viewed, bool(drop)) for file in search.front]
    return _rows([escape(name) for name in head], rows)


def _cells(file: FrontFile, timed: bool, viewed: bool, dropped: bool) -> list[str]:
    one, name = file.found, escape(file.path.name)
    link = f'<a href="{name}">{name}</a>'
    if viewed:
        link += f' <a href="{escape(file.viewer.name)}">look inside</a>'
    before = [] if one.before is None else [f"{one.before.loss:.3g}", _percent(one.before)]
    us = [f"{one.us:.0f}"] if timed else []
    costs = [f"{cost:,.0f}" for cost in one.costs.values()]
    drop = [f"{one.drop:.4g}"] if dropped and one.drop is not None else [""] * dropped
    return [link, f"{one.bytes:,}", f"{one.loss:.3g}", _percent(one), *drop, *before, *us, *costs]


def _percent(one: Found) -> str:
    return "" if one.agreement is None else f"{100 * one.agreement:.2f} %"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{name}" for name in head)]
    lines += ["".join(f"<td>{cell}" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}" for line in lines) + "</table>"


def _steps(search: SearchResult) -> str:
    """List, for each step from a file to the next larger one, the loss that a kilobyte of it saves,
    and the changes.
    """
    pairs = [(a.found, b.found) for a, b in pairwise(search.front) if b.found.bytes > a.found.bytes]
    gains = [_KILOBYTE * (a.loss - b.loss) / (b.bytes - a.bytes) for a, b in pairs]
    most = max(gains, default=0.0) or 1.0
    head = ("<tr><th>from<th>to<th>less loss for a kilobyte<th><th class=text>what changes",)
    rows = (
        f"<tr><td>{a.bytes:,}<td>{b.bytes:,}<td>{gain:.3g}"
        f'<td class="gain"><span class="bar" style="width:{max(gain, 0) / most * 120:.0f}px">'
        f'</span><td class="text">{escape(_changes(search.layers, a, b))}'
        for (a, b), gain in zip(pairs, gains, strict=True)
    )
    return f"<table>{''.join((*head, *rows))}</table>" if pairs else "<p>there is one file</p>"


def _changes(layers: Sequence[str], a: Found, b: Found) -> str:
    """Name the layers that have another option."""
    triples = zip(layers, a.candidate, b.candidate, strict=True)
    return ", ".join(f"{name} {one} → {other}" for name, one, other in triples if one != other)


def _against(search: SearchResult) -> str:
    """List the uniform networks beside the best file that is no larger, both fitted in full."""
    rows = []
    for name, one in sorted(search.uniform.items(), key=lambda item: item[1].bytes):
        files = [file.found for file in search.front if file.found.bytes <= one.bytes]
        best = sorted(files, key=lambda file: file.loss)[:1]
        cells = [(f"{both.bytes:,}", f"{both.loss:.3g}") for both in (one, *best)]
        rows.append([escape(name), *(cell for pair in cells for cell in pair)])
    if not rows:
        return "<p>none keeps to the bounds</p>"
    return _rows(("everywhere", "bytes", "loss", "best file no larger", "its loss"), rows)
