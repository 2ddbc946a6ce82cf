"""``circle-view``: look at a model in the browser, or write it as an offline page or a picture."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import luciole
from luciole.files.json_reading import read_json
from luciole.schema.errors import LucioleError
from luciole.schema.printable import counted
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    add_data_bounds,
    add_preprocess,
    check_without_data,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.drawing.blobs import Blobs
    from luciole.drawing.described import Look
    from luciole.drawing.document import Figures, Subject
    from luciole.drawing.levels import InputHistogram
    from luciole.ir import Model

_EXAMPLES = """examples:
  circle-view model.circle                         opens a page in the browser
  circle-view float.circle answer.circle           shows both, nodes matched by tensor name
  circle-view answer.circle -o answer.html         writes one file that needs no network
  circle-view answer.circle -o answer.svg          writes a picture
  circle-view                                      opens an empty page, on which files are dropped
"""
_FOREIGN = ("netron_attachment", "model_explorer", "model_explorer_graph")
"""Options that write files for other viewers."""
_RECORDS = 256
"""Records that are measured unless a limit is given."""


def main(argv: Sequence[str] | None = None, program: str = "circle-view") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help=f"{a_model()}; without one the page begins empty and takes a file",
    )
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="a second model to compare with: MODEL is the float one, OTHER the quantized one",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Output,
        metavar="FILE",
        help="write an offline page (.html) or a picture (.svg)",
    )
    parser.add_argument(
        "--embed-limit",
        type=int,
        metavar="BYTES",
        help="the largest array, say a layer's weights, that an offline page holds (without it "
        "500,000, and 6 MB in all)",
    )
    _add_look(parser)
    _add_figures(parser)
    _add_foreign(parser)
    _add_serving(parser)
    add_data_bounds(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_look(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--horizontal", action="store_true", help="draw from left to right instead of downwards"
    )
    parser.add_argument(
        "--colour-by",
        choices=("bits", "kind"),
        default="bits",
        help="what colours show at first: weight bits (default) or kinds of operators",
    )


def _add_figures(parser: argparse.ArgumentParser) -> None:
    figures = parser.add_argument_group("figures to show")
    figures.add_argument("--report", metavar="FILE", help="the quantizer's report (JSON)")
    figures.add_argument("--latency", metavar="FILE", help="what circle-bench --json printed")
    figures.add_argument("--errors", metavar="FILE", help="what luciole diff --json printed")
    figures.add_argument(
        "--data", metavar="DATA", help="records to draw the layers' inputs from: .npz[:array], ..."
    )
    add_preprocess(figures)
    figures.add_argument(
        "--limit", type=int, metavar="N", help=f"use the first N records (default {_RECORDS})"
    )


def _add_foreign(parser: argparse.ArgumentParser) -> None:
    foreign = parser.add_argument_group("for other viewers")
    foreign.add_argument(
        "--netron-attachment",
        type=Output,
        metavar="FILE",
        help="write a .json to drop on the model in Netron",
    )
    foreign.add_argument(
        "--model-explorer",
        type=Output,
        metavar="FILE",
        help="write node data for Model Explorer",
    )
    foreign.add_argument(
        "--model-explorer-graph",
        type=Output,
        metavar="FILE",
        help="write the graphs, with formats and levels, as a .json that Model Explorer opens",
    )


def _add_serving(parser: argparse.ArgumentParser) -> None:
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="N",
        help="the port on the loopback address (default: a free one)",
    )
    serving.add_argument("--no-browser", action="store_true", help="only print the address")


def _run(arguments: argparse.Namespace) -> int:
    from luciole.drawing.blobs import Blobs

    _check(arguments)
    blobs = Blobs()
    subjects = _subjects(arguments)
    document = _document(arguments, subjects, blobs)
    written = _write_foreign(arguments, document)
    if arguments.json:
        console.print_json(document)
    elif arguments.output:
        _write(arguments, document, blobs)
    code = _judged(arguments, subjects)
    if not (arguments.json or arguments.output or (written and arguments.no_browser)):
        _serve(arguments, document, subjects, blobs)
    return code


def _check(arguments: argparse.Namespace) -> None:
    """Refuse early arguments that do not go together, and files that cannot be written."""
    from luciole.files import check_writable

    _check_output(arguments)
    if not arguments.model:
        _check_empty(arguments)
    _check_json("--netron-attachment", arguments.netron_attachment, "Netron")
    _check_json("--model-explorer-graph", arguments.model_explorer_graph, "Model Explorer")
    _check_embedding(arguments)
    if not arguments.data:
        check_without_data(arguments, "preprocess", "limit")
    if arguments.port and (arguments.output or arguments.json):
        raise UsageError("--port goes with a served page: leave -o and --json out")
    if not 0 <= arguments.port < 65536:
        raise UsageError(f"--port is {arguments.port}, 0 to 65535 are possible")
    for name in ("output", *_FOREIGN):
        if path := getattr(arguments, name):
            check_writable(path)


def _check_json(option: str, path: str | None, reader: str) -> None:
    if path and os.path.splitext(path)[1].lower() not in ("", ".json"):
        raise UsageError(f"{option} is {path}: {reader} takes names ending in .json")


def _check_empty(arguments: argparse.Namespace) -> None:
    """Refuse options that speak of a model where there is none."""
    names = ("json", "report", "latency", "errors", "data", *_FOREIGN)
    asked = [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name)]
    if (arguments.output or "").lower().endswith(".svg"):
        asked.append("--output FILE.svg")
    if asked:
        raise UsageError(f"{asked[0]} goes with a MODEL")


def _check_output(arguments: argparse.Namespace) -> None:
    name = (arguments.output or "").lower()
    if name and not name.endswith((".html", ".svg")):
        raise UsageError(
            f"--output is {arguments.output}: a name ending in .html or .svg is needed"
        )
    if name.endswith(".svg") and arguments.other:
        raise UsageError("a picture shows one model, found two: write .html to compare them")


def _check_embedding(arguments: argparse.Namespace) -> None:
    limit = arguments.embed_limit
    if limit is None:
        return
    if limit < 0:
        raise UsageError(f"--embed-limit is {limit}, 0 or more bytes are possible")
    if not (arguments.output or "").lower().endswith(".html"):
        raise UsageError("--embed-limit goes with -o FILE.html: a served page shows everything")


def _paths(arguments: argparse.Namespace) -> list[str]:
    return [path for path in (arguments.model, arguments.other) if path]


def _subjects(arguments: argparse.Namespace) -> list[Subject]:
    """Return up to two models. Raises FormatError where one that has errors is to run."""
    from luciole.importers.imported import Imported

    subjects = [_subject(path) for path in _paths(arguments)]
    for subject in subjects if arguments.data else ():
        Imported(subject.model, list(subject.findings)).sound()
    return subjects


def _judged(arguments: argparse.Namespace, subjects: list[Subject]) -> int:
    """Print the first error of each model; return the exit code that they make."""
    from luciole.tools.common.reading import judged

    pairs = zip(_paths(arguments), subjects, strict=True)
    return max([judged(path, subject.findings) for path, subject in pairs], default=FINE)


def _document(
    arguments: argparse.Namespace, subjects: list[Subject], blobs: Blobs
) -> dict[str, Any]:
    """Return the document of up to two models, with every figure that was given."""
    from luciole.drawing.described import described
    from luciole.drawing.measures import names_any

    report = _add_figures_to(subjects, arguments) if subjects else None
    document = described(subjects, blobs, _look(arguments), luciole.__version__)
    layers = [row["name"] for row in report["layers"]] if report else []
    if layers and not names_any(document, layers):
        none = f"none of its {counted(len(layers), 'layer')} is in the model"
        console.say(f"luciole: warning: {arguments.report}: {none}")
    return document


def _add_figures_to(subjects: list[Subject], arguments: argparse.Namespace) -> Any:
    """Give the last model every figure that other programs found; return the quantizer's report."""
    from luciole.drawing import measures
    from luciole.drawing.proofs import report_proof

    models, shown = [subject.model for subject in subjects], subjects[-1]
    report = read_json(arguments.report) if arguments.report else None
    shown.figures, shown.histograms = _figures(arguments, models, report)
    if arguments.report:
        shown.notes = measures.report_notes(report, arguments.report)
        shown.proof = report_proof(report, arguments.report)
    return report


def _look(arguments: argparse.Namespace) -> Look:
    from luciole.drawing.described import Look

    return Look("horizontal" if arguments.horizontal else "vertical", arguments.colour_by)


def _subject(path: str) -> Subject:
    """Return a model, also where ``verify`` would refuse it: looking is how people find out why."""
    from luciole.drawing.document import Subject
    from luciole.ir.findings import refusal
    from luciole.tools.common.reading import read_model

    model, findings, dialect, nodes = read_model(path)
    name = os.path.basename(path)
    if not model.graphs:
        raise LucioleError(f"{name}: {refusal(findings)}")
    size = os.path.getsize(path) if os.path.isfile(path) else None
    return Subject(model, name, dialect.name, size, findings, nodes=nodes)


def _figures(
    arguments: argparse.Namespace, models: list[Model], report: Any
) -> tuple[Figures, dict[str, InputHistogram]]:
    """Read measures by operator name, and histograms of layers' inputs. What a later source
    measures, it measures alone.
    """
    from luciole.drawing import measures

    figures: Figures = {}
    histograms: dict[str, InputHistogram] = {}
    if arguments.report:
        measures.put(figures, measures.report_figures(report, arguments.report))
        histograms = measures.report_histograms(report, arguments.report)
    if arguments.data:
        histograms |= _measured(arguments, models, figures)
    for path, read in (
        (arguments.latency, measures.latency_figures),
        (arguments.errors, measures.error_figures),
    ):
        if path:
            measures.put(figures, read(read_json(path), path))
    return figures, histograms


def _measured(
    arguments: argparse.Namespace, models: list[Model], figures: Figures
) -> dict[str, InputHistogram]:
    """Measure on the records: inputs' histograms, and of two models the errors of every layer."""
    from luciole.drawing import measures
    from luciole.tools.data import asked_data
    from luciole.viewing import measured

    limit = _RECORDS if arguments.limit is None else arguments.limit
    data = asked_data(arguments, models[0].graph, arguments.data, limit=limit)
    errors, histograms = measured(models, data.records, f"{data.count} records")
    measures.put(figures, errors)
    return histograms


def _write_foreign(arguments: argparse.Namespace, document: dict[str, Any]) -> bool:
    """Write the files that were asked for other viewers; return whether there were any."""
    from luciole.drawing.measures import MEASURES
    from luciole.files import write_file
    from luciole.tools.view import foreign
    from luciole.tools.view.explorer import explorer_graphs

    if arguments.netron_attachment:
        content = foreign.netron_attachment(document)
        write_file(arguments.netron_attachment, console.to_json(content))
        console.say(f"written: {arguments.netron_attachment}")
    if arguments.model_explorer:
        title = MEASURES[foreign.model_explorer_figure(document)].title
        content = foreign.model_explorer_data(document)
        write_file(arguments.model_explorer, console.to_json(content))
        console.say(f"written: {arguments.model_explorer}, {title}")
    if arguments.model_explorer_graph:
        content = explorer_graphs(document)
        write_file(arguments.model_explorer_graph, console.to_json(content))
        console.say(f"written: {arguments.model_explorer_graph}")
    return any(getattr(arguments, name) for name in _FOREIGN)


def _write(arguments: argparse.Namespace, document: dict[str, Any], blobs: Blobs) -> None:
    from luciole.drawing.page import html
    from luciole.drawing.svg import svg
    from luciole.files import write_file

    path = arguments.output
    if path.lower().endswith(".svg"):
        model, title = document["models"][0], document["title"]
        graph, direction, by = model["graphs"][0], document["direction"], document["mode"]
        content = svg(graph, direction, title, by, model["wrong"])
    else:
        embedded = blobs.embedded(arguments.embed_limit)
        if left := len(blobs) - len(embedded):
            console.say(
                f"{counted(left, 'array')} of {len(blobs)} left out: --embed-limit takes more"
            )
        content = html(document, embedded)
    write_file(path, content)
    console.show(f"{path}: {console.size_text(len(content.encode()))}")


def _serve(
    arguments: argparse.Namespace,
    document: dict[str, Any],
    subjects: list[Subject],
    blobs: Blobs,
) -> None:
    """Serve the page, and what is opened in it, until the user stops it."""
    import webbrowser

    from luciole.drawing.page import html
    from luciole.tools.view.opening import MOST_OPENED, Shown, served
    from luciole.tools.view.server import Server

    shown = Shown(subjects, blobs, _look(arguments))
    page = html(document | served(), {})
    server = Server(page, blobs, arguments.port, shown.opened, MOST_OPENED)
    console.say(f"{document['title']}: {server.url} (Ctrl+C stops)")
    if not arguments.no_browser:
        webbrowser.open(server.url_for_once())
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        console.say("stopped")
    finally:
        server.server_close()
