"""``luciole verify``: check a model and list everything that is wrong with it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE, a_model, add_common, parser_for, run_program


def main(argv: Sequence[str] | None = None, program: str = "luciole verify") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers import load_with_findings
    from luciole.ir.findings import refusal

    model, findings = load_with_findings(arguments.model)
    failed = refusal(findings) is not None
    if arguments.json:
        listed = [finding.as_json() for finding in findings]
        console.print_json({"model": arguments.model, "valid": not failed, "findings": listed})
        return FAILED if failed else FINE
    for finding in findings:
        console.show(str(finding))
    operators = sum(len(graph.ops) for graph in model.graphs)
    verdict = "has errors" if failed else "is valid"
    console.show(
        f"{arguments.model} {verdict}: {len(model.graphs)} graphs, "
        f"{operators} operators, {len(findings)} findings"
    )
    return FAILED if failed else FINE
