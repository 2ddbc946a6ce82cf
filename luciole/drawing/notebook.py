"""Models and results in notebooks: the viewer's drawing, without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from html import escape
from itertools import chain

from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.drawing.svg import svg
from luciole.ir import LucioleError, Model
from luciole.ir.verify import verify
from luciole.lquantizer import Report, Result

MOST_DRAWN = 1500
"""Boxes of a drawing that a notebook keeps."""

_FRAME = (
    "width:fit-content;max-width:100%;max-height:520px;overflow:auto;"
    "border:1px solid #8884;border-radius:6px"
)


@singledispatch
def html_of(shown: object) -> str | None:
    """Return the page that a notebook shows of an object, None where its text is enough."""
    return None


@html_of.register
def _model(model: Model) -> str | None:
    picture = _picture(model)
    if picture is None:
        return None
    return f'<p>{escape(repr(model))}</p><div style="{_FRAME}">{picture}</div>'


@html_of.register
def _result(result: Result) -> str:
    picture = _picture(result.model)
    drawing = f'<div style="{_FRAME}">{picture}</div>' if picture else ""
    return f"{_report(result.report)}<details><summary>The model</summary>{drawing}</details>"


@html_of.register
def _report(report: Report) -> str:
    head, *rows = [[escape(cell) for cell in row] for row in report.rows()]
    table = chain(
        ["<table><thead>", _row("th", head), "</thead><tbody>"],
        (_row("td", row) for row in rows),
        ["</tbody></table>"],
    )
    left = [
        f"<li>{len(names)} left alone: {escape(reason)}</li>"
        for reason, names in report.left_alone().items()
    ]
    said = [f"<li>warning: {escape(text)}</li>" for text in report.warnings]
    notes = f"<ul>{''.join([*left, *said])}</ul>" if left or said else ""
    return f"<p>{escape(repr(report))}</p>{''.join(table)}{notes}"


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{c}</{tag}>' for c in cells) + "</tr>"


def _picture(model: Model) -> str | None:
    """Draw the main graph, None where there is none, or more of it than a notebook should keep."""
    if not model.graphs:
        return None
    try:
        made = document([Subject(model, "model", findings=verify(model))], Blobs())["models"][0]
    except LucioleError:
        return None
    graph = made["graphs"][0]
    drawing = graph["groups"]["root"] if graph["closed"] else graph["flat"]
    if len(drawing["vertical"]["items"]) > MOST_DRAWN:
        return None
    return svg(graph, "vertical", "model", "bits", made["wrong"])
