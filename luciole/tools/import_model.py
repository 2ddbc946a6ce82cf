"""``luciole import``: convert a model into a file of another format."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    a_model,
    add_common,
    parser_for,
    run_program,
)
from luciole.tools.common.extents import add_extents, asked_extents
from luciole.tools.proving.files import content_of, proved, show_proof, write_judged
from luciole.tools.proving.options import add_proof, check_proof

if TYPE_CHECKING:
    from luciole.ir import Model
    from luciole.lquantizer.proof import Proof

_TOLD = ("BATCH",)
"""The findings that are told here: what the result does otherwise than the file."""


def main(argv: Sequence[str] | None = None, program: str = "luciole import") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help=a_model(),
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Output,
        metavar="FILE",
        help=f"the {writable()} file to write",
    )
    add_extents(parser)
    parser.add_argument(
        "--unroll",
        action="store_true",
        help="unroll the loops of a Keras file's recurrent layers, so that they can be quantized "
        "and fine-tuned",
    )
    _add_onnx_arguments(parser)
    add_proof(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_onnx_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--opset",
        type=int,
        metavar="N",
        help="the version of an .onnx file's operators, 18 or newer (default: 18, or 21, which "
        "integers of 4 and 16 bits need)",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="write int8 layers of an .onnx file as operators on integers that give the codes of "
        "TFLite's kernels: slower, and other tools do not see a quantized network",
    )
    parser.add_argument(
        "--nhwc",
        action="store_true",
        help="give image inputs and outputs their channels last, where the file has them first",
    )


def _run(arguments: argparse.Namespace) -> int:
    from luciole.exporters import inexact, refused
    from luciole.importers.files import read
    from luciole.importers.reader import named
    from luciole.ir.passes.layout.put_channels_last import put_channels_last
    from luciole.tools.common.writing import check_output

    check_proof(arguments)
    check_output(arguments.output)
    _announce(arguments)
    imported = read(arguments.source, asked_extents(arguments), unroll=arguments.unroll)
    with named(Path(arguments.source)):
        model = imported.sound()
    if arguments.nhwc:
        put_channels_last(model.graph)
    for finding in imported.findings:
        if finding.code in _TOLD:
            console.say(f"{arguments.source}: {finding.sentence}")
    options = {"opset": arguments.opset, "exact": arguments.exact}
    content = content_of(model, arguments.output, **options)
    proof = _proof(content, model, arguments)
    code = write_judged(content, arguments.output, proof, arguments.keep)
    listed = inexact(model, arguments.output, exact=arguments.exact)
    if listed:
        which = f"{', '.join(listed)}: no exact form"
        console.say(f"{arguments.output}: codes may be a step apart behind {which}")
    beyond = refused(model, arguments.output)
    if beyond:
        console.say(f"{arguments.output}: LiteRT does not run INT64 in {', '.join(beyond)}")
    kinds = Counter(op.kind for graph in model.graphs for op in graph.ops)
    _print(arguments, len(content), kinds, proof)
    return code


def _proof(content: bytes, model: Model, arguments: argparse.Namespace) -> Proof | None:
    """Judge the file of an ONNX network of integers by its simulation, beside ONNX Runtime on the
    source; None for other sources, whose operators are taken over one by one.
    """
    from luciole.lquantizer.proving.simulation import simulated

    if arguments.no_proof or Path(arguments.source).suffix.lower() != ".onnx":
        return None
    reference = simulated(model)
    if reference is model:
        return None
    source = None if arguments.nhwc or arguments.constant else arguments.source
    return proved(content, arguments.output, reference, source=source)


def _print(
    arguments: argparse.Namespace, size: int, kinds: Counter[str], proof: Proof | None
) -> None:
    if arguments.json:
        name, figures = os.fspath(arguments.output), proof and asdict(proof)
        told = {"output": name, "bytes": size, "operators": dict(kinds), "proof": figures}
        console.print_json(told)
        return
    if not show_proof(proof):
        return
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    console.show(f"{arguments.output}: {console.size_text(size)}, {listed}")


def _announce(arguments: argparse.Namespace) -> None:
    """Print that a conversion takes long, where somebody waits for it."""
    from luciole.importers.reader import reader_of

    reader = reader_of(Path(arguments.source))
    if reader.extra and not arguments.json and sys.stderr.isatty():
        console.say(f"{arguments.source}: converted by {reader.name}, which takes a while ...")
