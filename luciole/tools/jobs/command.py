"""``luciole build``: run all steps that one file names: import, optimize, quantize, compile, ...

A step of a job is one of the programs, and its keys are the program's own options:

  [[step]]
  quantize = "net.tflite"
  output = "small.tflite"
  scheme = "int8"
  data = "train.npz:x_train"

Configurations of Samsung ONE's onecc (.cfg) are read as they are. All steps are checked before the
first one runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from luciole.tools.common import console
from luciole.tools.common.command import FINE, add_common, parser_for, run_program


def main(argv: Sequence[str] | None = None, program: str = "luciole build") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("job", metavar="JOB", help="a .toml file, or a .cfg file of ONE's onecc")
    parser.add_argument(
        "--dry-run", action="store_true", help="check the steps, print their commands, and end"
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.tools.jobs import in_toml, onecc
    from luciole.tools.jobs.steps import check_steps, run_steps

    read = onecc.steps_of if arguments.job.endswith(".cfg") else in_toml.steps_of
    steps = read(arguments.job)
    check_steps(steps)
    if not arguments.dry_run:
        return run_steps(steps, arguments.json)
    if arguments.json:
        console.print_json({"steps": [[step.program, *step.words] for step in steps]})
    else:
        for step in steps:
            console.show(step.command)
    return FINE
