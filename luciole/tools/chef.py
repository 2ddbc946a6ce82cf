"""``luciole chef``: cook a model from one of ONE's recipes (protobuf text), or
with --reverse write the recipe of a model.

  luciole chef net.recipe -o net.circle
  luciole chef --reverse net.circle -o net.recipe
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    add_common,
    byte_count,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.exporters.recipe.text import Recipe
    from luciole.importers.imported import Imported
    from luciole.ir import Model
    from luciole.ir.verify import Finding


def main(argv: Sequence[str] | None = None, program: str = "luciole chef") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "source",
        metavar="FILE",
        help="the recipe (with --reverse the model); - reads it from stdin",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Output,
        metavar="FILE",
        help=f"the {writable()} file to write; with --reverse the recipe (default: stdout)",
    )
    parser.add_argument("--reverse", action="store_true", help="write the recipe of a model")
    _add_constants(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_constants(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the seed of random constants (default 0)"
    )
    parser.add_argument(
        "--constants-limit",
        type=byte_count,
        metavar="BYTES",
        help="the most bytes that the constants of a recipe may take (default: 512 MiB)",
    )
    parser.add_argument(
        "--values",
        metavar="N",
        help="with --reverse: spell out constants of up to N elements (default 100), or all",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.reverse:
        return _reverse(arguments)
    if arguments.values is not None:
        raise UsageError("--values is for --reverse: a recipe says how large its constants are")
    if arguments.output is None:
        raise UsageError(f"-o FILE is needed: a {writable()} file")
    return _cook(arguments)


def _cook(arguments: argparse.Namespace) -> int:
    from luciole.exporters import save
    from luciole.tools.common.writing import check_output

    if arguments.seed is not None and arguments.seed < 0:
        raise UsageError(f"--seed takes a number from 0 on, found {arguments.seed}")
    check_output(arguments.output)
    model, findings, *_ = _recipe(arguments)
    size = save(model, arguments.output, check=False)
    kinds = Counter(op.kind for graph in model.graphs for op in graph.ops)
    faults = _faults(findings)
    for finding in faults:
        console.say(f"luciole: warning: {finding.path}: {finding.sentence}")
    if arguments.json:
        content = {"output": arguments.output, "bytes": size, "operators": kinds}
        console.print_json(content | {"findings": [str(finding) for finding in faults]})
        return FINE
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    console.show(f"{arguments.output}: {console.size_text(size)}, {listed or 'no operators'}")
    return FINE


def _recipe(arguments: argparse.Namespace) -> Imported:
    from pathlib import Path

    from luciole.importers.recipe.cook import cook, cook_file
    from luciole.importers.recipe.fillers import CONSTANTS_LIMIT

    seed = arguments.seed or 0
    limit = CONSTANTS_LIMIT if arguments.constants_limit is None else arguments.constants_limit
    if arguments.source != "-":
        return cook_file(Path(arguments.source), seed, limit)
    return cook(sys.stdin.buffer.read(), seed, limit)


def _faults(findings: Sequence[Finding]) -> list[Finding]:
    """List the findings that a cook should know: a recipe may well be meant to give a model that is
    wrong.
    """
    from luciole.ir.verify import Severity

    return [f for f in findings if f.severity is not Severity.NOTE]


def _reverse(arguments: argparse.Namespace) -> int:
    from luciole.exporters.recipe.text import to_recipe
    from luciole.files import check_writable, write_file
    from luciole.tools.common.reading import judged, read_model

    for name in ("seed", "constants_limit"):
        if vars(arguments)[name] is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} is for recipes: --reverse makes no constants")
    most = _most_values(arguments.values)
    if arguments.output is not None:
        check_writable(arguments.output)
    imported = read_model(arguments.source)
    _refuse_left_out(imported)
    model = imported.model
    recipe = to_recipe(model, most, imported.dialect)
    if recipe.notes:
        console.say(f"luciole: note: not in the recipe: {'; '.join(recipe.notes)}")
    if arguments.output is not None:
        write_file(arguments.output, recipe.text)
    _print_recipe(arguments, recipe, model)
    return judged(arguments.source, imported.findings)


def _print_recipe(arguments: argparse.Namespace, recipe: Recipe, model: Model) -> None:
    """Print the recipe, or, where it went into a file, how large it is."""
    if arguments.json:
        text = recipe.text if arguments.output is None else None
        console.print_json({"output": arguments.output, "recipe": text, "notes": recipe.notes})
    elif arguments.output is None:
        sys.stdout.write(recipe.text)  # its texts are escaped
    else:
        operands = sum(len(graph.values) for graph in model.graphs)
        operations = sum(len(graph.ops) for graph in model.graphs)
        console.show(f"{arguments.output}: {operands} operands, {operations} operations")


def _refuse_left_out(imported: Imported) -> None:
    """Raise FormatError where a file holds more than the model, which ``verify`` does not see."""
    from luciole.ir.verify import verify

    seen = set(verify(imported.model))
    lost = [finding for finding in imported.findings if finding not in seen]
    imported._replace(findings=lost).sound()


def _most_values(argument: str | None) -> int:
    from luciole.exporters.recipe.text import MOST_VALUES

    if argument is None:
        return MOST_VALUES
    if argument == "all":
        return sys.maxsize
    if not argument.isdecimal():
        raise UsageError(f"--values takes a number or all, found {argument}")
    return int(argument)
