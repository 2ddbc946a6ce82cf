"""``luciole optimize``: make a model simpler without changing what it computes.

Constants are folded, batch normalization and activations become part of the layers before them
(rounding may differ in a float's last bit), and what no output depends on goes.

  luciole optimize model.tflite -o model.circle --batch 1
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.command import (
    a_model,
    add_common,
    add_strip_names,
    check_batch,
    parser_for,
    run_program,
)
from luciole.tools.proving.files import content_of, proved, show_proof, write_judged
from luciole.tools.proving.options import add_proof

if TYPE_CHECKING:
    from luciole.ir import Model
    from luciole.lquantizer.proof import Proof


def main(argv: Sequence[str] | None = None, program: str = "luciole optimize") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help=f"the {writable()} file to write"
    )
    parser.add_argument(
        "--batch", type=int, metavar="N", help="the batch size of inputs that leave it open"
    )
    add_strip_names(parser)
    add_proof(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers.files import read
    from luciole.importers.reader import named
    from luciole.ir.passes.strip_names import strip_names
    from luciole.tools.common.writing import check_output

    check_batch(arguments.batch)
    check_output(arguments.output)
    found = read(arguments.model, arguments.batch)
    with named(Path(arguments.model)):
        model = found.sound()
    original = model.clone()
    optimize(model)
    if arguments.strip_names:
        strip_names(model)
    content = content_of(model, arguments.output)
    proof = None
    if not arguments.no_proof:
        proof = proved(content, arguments.output, original, same=True)
    code = write_judged(content, arguments.output, proof, arguments.keep)
    _print(arguments, len(content), _kinds(original), _kinds(model), proof)
    return code


def _print(
    arguments: argparse.Namespace,
    size: int,
    before: Counter[str],
    after: Counter[str],
    proof: Proof | None,
) -> None:
    if arguments.json:
        content = {"output": arguments.output, "bytes": size, "proof": proof and asdict(proof)}
        console.print_json({**content, "before": dict(before), "after": dict(after)})
        return
    if not show_proof(proof):
        return
    gone = ", ".join(f"{n} {kind}" for kind, n in (before - after).most_common())
    console.show(
        f"{arguments.output}: {console.size_text(size)}, "
        f"{before.total()} -> {after.total()} operators" + (f", without {gone}" if gone else "")
    )


def optimize(model: Model) -> None:
    """Run the passes that keep what a model computes on all of its graphs.

    Raises ShapeError, naming the operator, where operands do not fit together.
    """
    from luciole.ir.passes import run_passes
    from luciole.ir.passes.fold_constants import FoldConstants
    from luciole.ir.passes.fuse_activation import fuse_activation
    from luciole.ir.passes.fuse_batch_norm import fuse_batch_norm
    from luciole.ir.passes.remove_dead import remove_dead, remove_dead_buffers
    from luciole.kernels.core.evaluation import evaluate

    passes = (FoldConstants(evaluate), fuse_batch_norm, fuse_activation, remove_dead)
    for graph in model.graphs:
        run_passes(graph, passes)
    remove_dead_buffers(model)


def _kinds(model: Model) -> Counter[str]:
    return Counter(op.kind for graph in model.graphs for op in graph.ops)
