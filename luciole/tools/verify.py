"""``luciole verify``: check a model and list everything that is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE, a_model, add_common, parser_for, run_program

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
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers import load_with_findings
    from luciole.ir.findings import refusal

    model, findings = load_with_findings(arguments.model)
    failed = refusal(findings) is not None
    rows = _declined(model) if arguments.performance and not failed else None
    if arguments.json:
        listed = [finding.as_json() for finding in findings]
        report = {"model": arguments.model, "valid": not failed, "findings": listed}
        console.print_json(report if rows is None else report | {"performance": _as_json(rows)})
        return FAILED if failed else FINE
    _print_findings(arguments.model, model, findings, failed)
    if rows is not None:
        _print_performance(rows)
    return FAILED if failed else FINE


def _print_findings(name: str, model: Model, findings: Sequence[Finding], failed: bool) -> None:
    for finding in findings:
        console.show(str(finding))
    operators = sum(len(graph.ops) for graph in model.graphs)
    verdict = "has errors" if failed else "is valid"
    console.show(
        f"{name} {verdict}: {len(model.graphs)} graphs, "
        f"{operators} operators, {len(findings)} findings"
    )


def _declined(model: Model) -> list[Row]:
    """List the operators of the main graph that are not compiled; unknown extents are 1."""
    from luciole.interpreter import Interpreter
    from luciole.tools.common.declined import declined

    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    return declined(interpreter.plan)


def _as_json(rows: Sequence[Row]) -> list[dict[str, str]]:
    return [{"operator": name, "kind": kind, "reason": reason} for name, kind, reason in rows]


def _print_performance(rows: Sequence[Row]) -> None:
    from luciole.tools.common.declined import print_declined

    if rows:
        print_declined(rows)
    else:
        console.show("every operator is compiled")
