"""Look at models from Python: the viewer's page, a summary, and what is wrong with a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import luciole
from luciole.drawing import measures
from luciole.drawing.blobs import Blobs
from luciole.drawing.described import Look, described
from luciole.drawing.document import Figures, Subject
from luciole.drawing.levels import InputHistogram
from luciole.drawing.page import html
from luciole.drawing.proofs import report_proof
from luciole.drawing.svg import svg
from luciole.files import write_file
from luciole.importers import as_model, load_with_findings
from luciole.importers.files import read
from luciole.interpreter.compare import compare, second_inputs
from luciole.interpreter.finite import check_finite
from luciole.interpreter.records import Data, Records, check_records, records_of
from luciole.ir import LucioleError, Model
from luciole.ir.checked import checked
from luciole.ir.errors import expect
from luciole.ir.findings import Finding, refusal
from luciole.ir.shown import Shown
from luciole.ir.text.summary import Summary
from luciole.ir.text.summary import summary as summary_of
from luciole.ir.verify import verify as findings_of
from luciole.lquantizer import Report, Result
from luciole.watching import input_histograms

__all__ = ["View", "summary", "verify", "view"]

Path_ = str | os.PathLike[str]

_FRAME = "width:100%;height:640px;border:1px solid #8884;border-radius:6px"


@dataclass(frozen=True)
class View(Shown):
    """The viewer's page of a model, or of two side by side, which notebooks show as it is."""

    document: dict[str, Any]
    html: str

    def __repr__(self) -> str:
        return f"<View: {self.document['title']}, {len(self.html):,} characters of HTML>"

    def _repr_html_(self) -> str:
        """Return the page in a frame."""
        return f'<iframe style="{_FRAME}" srcdoc="{escape(self.html)}"></iframe>'

    @checked
    def save(self, path: Path_) -> int:
        """Write one offline page (.html), or of a model alone the drawing (.svg). Returns the
        file's size in bytes. Raises LucioleError for another extension.
        """
        extension = Path(path).suffix.lower()
        if extension == ".html":
            return write_file(path, self.html)
        if extension != ".svg":
            raise LucioleError(f"{path}: a name ending in .html or .svg is needed")
        if len(self.document["models"]) > 1:
            raise LucioleError("a picture shows one model: write .html to compare two")
        return write_file(path, drawn(self.document))


def drawn(document: dict[str, Any]) -> str:
    """Draw the main graph of a document's first model as SVG."""
    model = document["models"][0]
    direction, by = document["direction"], document["mode"]
    return svg(model["graphs"][0], direction, document["title"], by, model["wrong"])


@checked
def view(
    model: Path_ | Model | Result,
    other: Path_ | Model | Result | None = None,
    *,
    data: Data | None = None,
    report: Report | None = None,
    horizontal: bool = False,
    colour_by: str = "bits",
    embed_limit: int | None = None,
) -> View:
    """Show a model in the viewer, or two beside each other, as ``circle-view`` does: a notebook
    shows the page, ``view(...).save("net.html")`` writes it.

    ``data`` are records for the (first) model as ``luciole.run`` takes them: from them come the
    inputs of layers with learned levels, and of two models the errors of every layer. ``report`` is
    what ``luciole.quantize`` says of the last model (a Result brings its own). ``colour_by`` is
    "bits" or "kind"; arrays of up to ``embed_limit`` bytes are in the page. Raises LucioleError for
    a file that holds no graph, InputError for data that does not fit.

        luciole.view("model.circle", result, data=images)
    """
    if colour_by not in ("bits", "kind"):
        raise LucioleError(f"colour_by is {colour_by!r}: 'bits' or 'kind' is needed")
    if embed_limit is not None and embed_limit < 0:
        raise LucioleError(f"embed_limit is {embed_limit}: 0 or more bytes are possible")
    expect(report, (Report, type(None)), "report: a Report (of a result: result.report)")
    sources = [model] if other is None else [model, other]
    subjects, blobs = [_subject(source, n) for n, source in enumerate(sources)], Blobs()
    told = next((s.report for s in reversed(sources) if isinstance(s, Result)), report)
    if told is not None:
        _add_report(subjects[-1], told)
    if data is not None:
        _add_measured(subjects, data)
    look = Look("horizontal" if horizontal else "vertical", colour_by)
    document = described(subjects, blobs, look, luciole.__version__)
    return View(document, html(document, blobs.embedded(embed_limit)))


def _add_report(subject: Subject, report: Report) -> None:
    """Give a model what the quantizer says of it."""
    content, name = report.to_json(), "the report"
    subject.figures = measures.report_figures(content, name)
    subject.histograms = measures.report_histograms(content, name)
    subject.notes = measures.report_notes(content, name)
    subject.proof = report_proof(content, name)


def _add_measured(subjects: Sequence[Subject], data: Data) -> None:
    """Give the last model what is measured on records, instead of the same figures of a report."""
    models, last = [subject.model for subject in subjects], subjects[-1]
    records = records_of(models[0].graph, data)
    count = check_records(models[0].graph, records)
    check_finite(models[0].graph, records)
    errors, histograms = measured(models, records, f"{count} records")
    measures.put(last.figures, errors)
    last.histograms = {**last.histograms, **histograms}


def _subject(source: Path_ | Model | Result, place: int) -> Subject:
    """Describe a model to show, also one that ``verify`` would refuse."""
    title = "quantized" if isinstance(source, Result) else ("model", "other")[place]
    if isinstance(source, Result):
        source = source.model
    if isinstance(source, Model):
        return Subject(source, title, findings=findings_of(source))
    expect(source, (str, os.PathLike), "a model or its path")
    path = Path(source)
    model, findings, dialect, nodes = read(path)
    if not model.graphs:
        raise LucioleError(f"{path.name}: {refusal(findings)}")
    return Subject(model, path.name, dialect.name, _size(path), findings, nodes=nodes)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def measured(
    models: Sequence[Model], records: Records, source: str
) -> tuple[Figures, dict[str, InputHistogram]]:
    """Measure on records of the first of one or two models: of two the errors of every layer, and
    of the last one the inputs of its layers. ``source`` says what the records are.
    """
    figures: Figures = {}
    if len(models) == 2:
        compared = compare(models[0], models[1], records).to_json()
        measures.add(figures, measures.error_figures(compared, "the comparison"))
        records = second_inputs(models[0].graph, models[1].graph, records)
    return figures, input_histograms(models[-1], records, source)


def summary(model: Path_ | Model) -> Summary:
    """Gather a model's figures, as ``circle-dump --summary`` prints them: bytes, parameters,
    multiply-accumulates, kinds of operators, and layers with their bits. ``print`` shows the page.
    """
    if isinstance(model, Model):
        return summary_of(model)
    return summary_of(as_model(model), os.fspath(model), _size(Path(model)))


def verify(model: Path_ | Model) -> list[Finding]:
    """List everything that is wrong with a model or a file, as ``luciole verify`` does: each
    finding has a severity, a stable code, a place and a sentence. Errors are what ``load`` refuses.
    Raises FormatError where there is no model in the file at all.
    """
    if isinstance(model, Model):
        return findings_of(model)
    expect(model, (str, os.PathLike), "a Model or the path of a file")
    return load_with_findings(model)[1]
