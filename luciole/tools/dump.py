"""``circle-dump``: print everything that a model file holds, as Samsung
ONE's circledump does or as JSON; or answer one question, as circle-inspect,
circle-operator and circle-tensordump do.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import UsageError, a_model, add_common, parser_for, run_program

if TYPE_CHECKING:
    from luciole.importers.imported import Imported
    from luciole.ir import Model

VIEWS = {
    "summary": "operators by kind, parameters, bytes by type, MACs and bits of each layer",
    "operators": "operators' names, one a line, as they run",
    "op-version": "each kind of operator and its highest version: NAME,VERSION",
    "conv2d-weight": "convolutions and what makes their weights: CONV_2D,CONST",
    "tensors": "tensors with type, shape, bytes and quantization",
    "tensor-dtype": "tensors and their types: NAME TYPE",
    "tensor-shape": "tensors and their shapes: NAME [d,d]",
    "constants": "names of tensors with contents, one a line",
    "signatures": "how the model may be called by name",
}
"""Options that print one view instead of everything."""


def main(argv: Sequence[str] | None = None, program: str = "circle-dump") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=f"{a_model()}; - reads standard input",
    )
    views = parser.add_mutually_exclusive_group()
    for name, what in VIEWS.items():
        views.add_argument(
            f"--{name}", dest="view", action="store_const", const=name, help=f"print {what}"
        )
    views.add_argument(
        "--tensor", metavar="NAME", help="print a tensor and its values, or write them: -o"
    )
    views.add_argument(
        "--tensors-to-hdf5",
        type=Output,
        metavar="FILE",
        help="write every tensor's values, scale, zero point, min and max, as circle-tensordump",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Output,
        metavar="FILE",
        help="with --tensor: the .npy or .h5 file to write",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.tools.common.reading import judged, read_model

    if arguments.output is not None and arguments.tensor is None:
        raise UsageError("-o goes with --tensor: its values are written")
    imported = read_model(arguments.model)
    if arguments.view is not None:
        _view(imported.model, arguments)
    elif arguments.tensor is not None or arguments.tensors_to_hdf5 is not None:
        _tensors(imported.model, arguments)
    else:
        _everything(imported, arguments)
    return judged(arguments.model, imported.findings)


def _everything(imported: Imported, arguments: argparse.Namespace) -> None:
    from luciole.ir.text import listing

    model, findings, dialect, _ = imported
    if arguments.json:
        console.print_json(listing.describe(model, arguments.model, dialect, findings))
        return
    for line in listing.dump_lines(model, arguments.model, dialect, findings):
        console.show(line)


def _view(model: Model, arguments: argparse.Namespace) -> None:
    from luciole.ir.text.summary import summary
    from luciole.tools import dump_summary, dump_views

    if arguments.view == "summary":
        name = arguments.model
        page = summary(model, name, os.path.getsize(name) if os.path.isfile(name) else None)
        if arguments.json:
            console.print_json(page.as_json())
        else:
            dump_summary.print_summary(page)
        return
    rows = dump_views.VIEWS[arguments.view](model)
    if arguments.json:
        console.print_json(rows.content)
    elif rows.table is not None:
        console.print_table(rows.table)
    else:
        for line in rows.lines:
            console.show(line)


def _tensors(model: Model, arguments: argparse.Namespace) -> None:
    from luciole.ir.names import find_tensor
    from luciole.tools import dump_tensors

    if arguments.tensors_to_hdf5 is not None:
        count = dump_tensors.write_hdf5(model, arguments.tensors_to_hdf5)
        report = {"output": arguments.tensors_to_hdf5, "tensors": count}
        _print(report, f"{arguments.tensors_to_hdf5}: {count} tensors", arguments.json)
        return
    value = find_tensor(model.graphs, arguments.tensor)
    if arguments.output is None:
        _print(dump_tensors.as_json(value), dump_tensors.as_text(value), arguments.json)
        return
    dump_tensors.write_tensor(value, arguments.output)
    report = {"output": arguments.output, "tensor": value.name}
    _print(report, f"{arguments.output}: {value!r}", arguments.json)


def _print(report: Any, text: str, as_json: bool) -> None:
    if as_json:
        console.print_json(report)
        return
    for line in text.split("\n"):
        console.show(line)
