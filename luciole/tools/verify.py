"""``luciole verify``: check a model and list everything that is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.schema.printable import counted
from luciole.tools.common import console
from luciole.tools.common.command import (
    FAILED,
    FINE,
    UNSUPPORTED,
    a_model,
    add_common,
    parser_for,
    run_program,
)
from luciole.tools.common.extents import add_extents, asked_extents

if TYPE_CHECKING:
    from luciole.ir import Model
    from luciole.ir.findings import Finding
    from luciole.tools.common.declined import Row


def main(argv: Sequence[str] | None = None, program: str = "luciole verify") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "--performance", action="store_true", help="also list what has no compiled kernel, and why"
    )
    parser.add_argument(
        "--c",
        action="store_true",
        help="also list what has no C form, and why: exit code 3 where luciole compile refuses",
    )
    add_extents(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers.files import read
    from luciole.ir.findings import refusal

    imported = read(arguments.model, asked_extents(arguments))
    model, findings = imported.model, imported.findings
    failed = refusal(findings) is not None
    rows = _declined(model) if arguments.performance and not failed else None
    refused = _without_c(model) if arguments.c and not failed else None
    code = FAILED if failed else UNSUPPORTED if refused else FINE
    if arguments.json:
        listed = [finding.as_json() for finding in findings]
        report = {"model": arguments.model, "valid": not failed, "findings": listed}
        parts = {"performance": rows, "c": refused}
        tables = {name: _as_json(part) for name, part in parts.items() if part is not None}
        console.print_json(report | tables)
        return code
    _print_findings(arguments.model, model, findings, failed)
    if rows is not None:
        _print_performance(rows)
    if refused is not None:
        _print_without_c(refused)
    return code


def _print_findings(name: str, model: Model, findings: Sequence[Finding], failed: bool) -> None:
    for finding in findings:
        console.show(str(finding))
    operators = sum(len(graph.ops) for graph in model.graphs)
    verdict = "has errors" if failed else "is valid"
    numbers = {"graph": len(model.graphs), "operator": operators, "finding": len(findings)}
    parts = [counted(number, what) for what, number in numbers.items()]
    console.show(f"{name} {verdict}: {', '.join(parts)}")


def _declined(model: Model) -> list[Row]:
    """List the operators of the main graph that are not compiled, or a reason why nobody can tell;
    unknown extents are 1.
    """
    from luciole.interpreter import Interpreter
    from luciole.ir import LucioleError
    from luciole.tools.common.declined import declined

    interpreter = Interpreter(model)
    try:
        interpreter.allocate_tensors()
    except LucioleError as error:
        opened = [repr(value.name) for value in model.graph.inputs if None in value.shape]
        if not opened:
            raise
        why = f"open extents of {', '.join(opened)} count as 1: --shape NAME=... settles them"
        return [("the network", "", f"{error} ({why})")]
    return declined(interpreter.plan)


def _without_c(model: Model) -> list[Row]:
    """List operators without a C form, or a reason why the network as a whole has none."""
    from luciole.compiler import CompileOptions, compile_model
    from luciole.compiler.lower import refusals
    from luciole.ir import LucioleError

    try:
        refused = refusals(model.graph).items()
        rows = [(op.name, op.kind, why.removeprefix(f"{op}: ")) for op, why in refused]
        if not rows:
            compile_model(model, CompileOptions("network"))
    except LucioleError as error:
        return [("the network", "", str(error))]
    return rows


def _print_without_c(rows: Sequence[Row]) -> None:
    from luciole.tools.common.console import fitted, print_table

    if rows:
        print_table(fitted([("operator", "kind", "why"), *rows]), "without a C form")
    else:
        console.show("luciole compile writes it as C")


def _as_json(rows: Sequence[Row]) -> list[dict[str, str]]:
    return [{"operator": name, "kind": kind, "reason": reason} for name, kind, reason in rows]


def _print_performance(rows: Sequence[Row]) -> None:
    from luciole.tools.common.declined import print_declined

    if rows:
        print_declined(rows)
    else:
        console.show("every operator is compiled")
