"""Read a model that is cut, and write and show what comes out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import a_model

if TYPE_CHECKING:
    from luciole.ir import Model, Value


def add_files(parser: argparse.ArgumentParser) -> None:
    """Declare the model to read and the file to write."""
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "-o",
        dest="target",
        required=True,
        type=Output,
        metavar="FILE",
        help=f"the {writable()} file to write",
    )


def opened(arguments: argparse.Namespace) -> Model:
    """Read the model, once it is known that the result can be written."""
    from luciole.importers import load
    from luciole.tools.common.writing import check_output

    check_output(arguments.target)
    return load(arguments.model)


def write(arguments: argparse.Namespace, model: Model) -> None:
    """Write a model and show what it takes and gives."""
    from luciole.files import write_file
    from luciole.tools.proving.files import content_of

    size = write_file(arguments.target, content_of(model, arguments.target))
    if arguments.json:
        console.print_json({"output": arguments.target, "bytes": size, **described(model)})
        return
    count = sum(len(graph.ops) for graph in model.graphs)
    console.show(f"{arguments.target}: {console.size_text(size)}, {count} operators")
    show_ends(model)


def described(model: Model) -> dict[str, Any]:
    """Turn a model's ends and the number of its operators into JSON values."""
    return {
        "operators": sum(len(graph.ops) for graph in model.graphs),
        "inputs": [_end(value) for value in model.graph.inputs],
        "outputs": [_end(value) for value in model.graph.outputs],
    }


def _end(value: Value) -> dict[str, Any]:
    return {"name": value.name, "dtype": value.dtype.name, "shape": value.shape}


def show_ends(model: Model) -> None:
    """Print a line for each input and output."""
    from luciole.ir.value import shape_text

    for side, values in (("takes", model.graph.inputs), ("gives", model.graph.outputs)):
        for value in values:
            console.show(f"{side} {value.name}: {value.dtype.name} {shape_text(value.shape)}")
