"""``luciole completion``: write a script by which a shell completes programs, options and files.

eval "$(luciole completion bash)"                        # in ~/.bashrc
luciole completion zsh > ~/.zfunc/_luciole               # a folder of fpath
eval "$(luciole completion bash --program lquantizer)"   # a program with a name of its own
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from luciole.ir.errors import missing_extra
from luciole.tools.common import console
from luciole.tools.common.command import FINE, add_common, parser_for, run_program

SHELLS = ("bash", "zsh", "tcsh")
OWN_NAMES = {
    "luciole": "",
    "lquantizer": "lquantizer",
    "circle-dump": "dump",
    "circle-bench": "bench",
    "circle-view": "view",
}
"""Commands that users type, and the program behind each."""


def main(argv: Sequence[str] | None = None, program: str = "luciole completion") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.add_argument(
        "--program",
        choices=tuple(OWN_NAMES),
        default="luciole",
        metavar="NAME",
        help=f"whose words to complete: {', '.join(OWN_NAMES)} (default: luciole)",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise missing_extra("completion needs the package shtab", "completion") from None
    script = str(shtab.complete(described(arguments.program), arguments.shell))
    if arguments.json:
        console.print_json({"shell": arguments.shell, "script": script})
    else:
        console.show_text(script)
    return FINE


def described(program: str) -> argparse.ArgumentParser:
    """Make the parser of a command; luciole's has all programs."""
    from luciole.tools.main import PROGRAMS, parser_of

    if OWN_NAMES[program]:
        parser = parser_of(OWN_NAMES[program])
        parser.prog = program
        return parser
    whole = argparse.ArgumentParser(program, description="All programs of luciole.")
    programs = whole.add_subparsers()
    for name, known in PROGRAMS.items():
        # a percent sign of a summary would be a format's
        help_text = known.summary.replace("%", "%%")
        programs.add_parser(name, help=help_text, parents=[parser_of(name)], add_help=False)
    return whole
