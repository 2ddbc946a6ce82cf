"""``luciole optimize``: make a model simpler without changing what it computes.

Passes run until none of them changes anything. They remove needless operators, bring different
spellings into one form, fuse groups of operators that converters write for one, fold constants,
fold batch normalizations and activations into the layers before them, and cancel pairs of
TRANSPOSE. Results may differ in a float's last bits.

  luciole optimize model.tflite -o model.circle --batch 1
  luciole optimize model.circle -o out.circle --passes fuse_batch_norm,remove_dead --explain
  luciole optimize --list
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    add_data_bounds,
    add_preprocess,
    add_strip_names,
    check_without_data,
    parser_for,
    run_program,
)
from luciole.tools.common.extents import add_extents, asked_extents
from luciole.tools.proving.files import content_of, proved, show_proof, write_judged
from luciole.tools.proving.options import add_proof, check_proof

if TYPE_CHECKING:
    from luciole.ir import Model
    from luciole.ir.passes.registry import Change, NamedPass
    from luciole.lquantizer.judging.records import Judges
    from luciole.lquantizer.proof import Proof


def main(argv: Sequence[str] | None = None, program: str = "luciole optimize") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", nargs="?", help=a_model())
    parser.add_argument(
        "-o", "--output", type=Output, metavar="FILE", help=f"the {writable()} file to write"
    )
    add_extents(parser)
    _add_passes(parser)
    add_strip_names(parser)
    parser.add_argument(
        "--verify",
        metavar="DATA",
        help="records that prove the file: HDF5, .npz[:array], .npy, a folder, a list file "
        "(default: made up)",
    )
    add_preprocess(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N records")
    add_data_bounds(parser)
    add_proof(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_passes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default="o1",
        choices=("o1", "canonical", "none"),
        help="which passes run: all that are good for every model (o1), only those that spell "
        "everything in one way (canonical), or none (default: o1)",
    )
    parser.add_argument(
        "--passes",
        metavar="A,B",
        help="run these passes instead of a preset's, whose "
        "name may stand among them: o1,convert_nchw_to_nhwc",
    )
    parser.add_argument("--without", metavar="A,B", help="do not run these passes")
    parser.add_argument("--list", action="store_true", help="list all passes, and end")
    parser.add_argument(
        "--explain", action="store_true", help="say of each pass which operators went and came"
    )


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers.files import read
    from luciole.importers.reader import named
    from luciole.ir.passes.registry import chosen
    from luciole.ir.passes.strip_names import strip_names
    from luciole.optimizing import rewrite_model
    from luciole.tools.common.writing import check_output

    if arguments.list:
        return _show_list(arguments.json)
    settled = asked_extents(arguments)
    for name, option in ((arguments.model, "MODEL"), (arguments.output, "-o FILE")):
        if name is None:
            raise UsageError(f"{option} is missing")
    check_proof(arguments, "verify")
    if arguments.verify is None:
        check_without_data(arguments, "preprocess", "limit", needs="--verify DATA")
    check_output(arguments.output)
    asked, left_out = _names(arguments.passes), _names(arguments.without) or []
    is_circle = Path(arguments.output).suffix == ".circle"
    passes = chosen(arguments.preset, asked, left_out, circle=is_circle)
    opened = read(arguments.model, settled)
    with named(Path(arguments.model)):
        model = opened.sound()
    original = model.clone()
    changes = rewrite_model(model, passes)
    if arguments.strip_names:
        strip_names(model)
    content = content_of(model, arguments.output)
    proof = None
    if not arguments.no_proof:
        proof = proved(content, arguments.output, original, _judges(arguments, original), same=True)
    code = write_judged(content, arguments.output, proof, arguments.keep)
    outcome = _Outcome(len(content), _kinds(original), _kinds(model), changes, proof)
    _print(arguments, outcome)
    return code


def _names(text: str | None) -> list[str] | None:
    """Read names with commas between them."""
    return None if text is None else [name for word in text.split(",") if (name := word.strip())]


def _judges(arguments: argparse.Namespace, model: Model) -> Judges | None:
    """Read the records of ``--verify`` where there are any."""
    from luciole.lquantizer.judging.records import Judges
    from luciole.tools.data import asked_data

    check_proof(arguments, "verify")
    if arguments.verify is None:
        return None
    data = asked_data(arguments, model.graph, arguments.verify, limit=arguments.limit)
    return Judges(data.records, "that were given")


@dataclass(frozen=True)
class _Outcome:
    """What the program made: the size of the file, operators by kind before and behind, what each
    pass changed, and the proof.
    """

    size: int
    before: Counter[str]
    after: Counter[str]
    changes: Mapping[str, Change]
    proof: Proof | None


def _print(arguments: argparse.Namespace, outcome: _Outcome) -> None:
    before, after, proof = outcome.before, outcome.after, outcome.proof
    if arguments.json:
        content = {
            "output": arguments.output,
            "bytes": outcome.size,
            "proof": proof and asdict(proof),
            "before": dict(before),
            "after": dict(after),
            "passes": {name: asdict(change) for name, change in outcome.changes.items()},
        }
        console.print_json(content)
        return
    if arguments.explain:
        _explain(outcome.changes)
    if not show_proof(proof):
        return
    gone = ", ".join(f"{n} {kind}" for kind, n in (before - after).most_common())
    console.show(
        f"{arguments.output}: {console.size_text(outcome.size)}, "
        f"{before.total()} -> {after.total()} operators" + (f", without {gone}" if gone else "")
    )


def _explain(changes: Mapping[str, Change]) -> None:
    """Print a line for each pass that changed anything."""
    width = max(map(len, changes), default=0)
    for name, change in changes.items():
        both = change.gone & change.added
        words = [f"-{n} {kind}" for kind, n in (change.gone - both).most_common()]
        words += [f"+{n} {kind}" for kind, n in (change.added - both).most_common()]
        console.show(f"{name:{width}}  {', '.join(words) or 'as many operators, other operands'}")
    if not changes:
        console.show("no pass changed anything")


def _show_list(as_json: bool) -> int:
    """Print the name, the folder and the first sentence of every pass."""
    from luciole.ir.passes.registry import all_passes

    passes = all_passes().values()
    if as_json:
        console.print_json([_described(one) for one in passes])
        return FINE
    width = max(len(one.name) for one in passes)
    for folder in dict.fromkeys(one.folder for one in passes):
        console.show(f"{folder}:")
        for one in passes:
            if one.folder == folder:
                mark = "*" if one.call.on_request else " "
                console.show(f" {mark} {one.name:{width}}  {one.summary}")
    console.show("* only where it is named by --passes")
    return FINE


def _described(one: NamedPass) -> dict[str, object]:
    return {
        "name": one.name,
        "folder": one.folder,
        "rewrites": one.summary,
        "on_request": one.call.on_request,
        "only_circle": one.needs_circle,
    }


def _kinds(model: Model) -> Counter[str]:
    return Counter(op.kind for graph in model.graphs for op in graph.ops)
