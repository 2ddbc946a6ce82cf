"""How every program starts and ends: arguments, one-line errors, exit codes."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import NoReturn

import luciole
from luciole.importers.reader import readable
from luciole.schema.errors import LucioleError
from luciole.schema.printable import printable
from luciole.tools.common import console

FINE, FAILED, WRONG_USAGE, UNSUPPORTED, INTERRUPTED = 0, 1, 2, 3, 130

_STANDARD_OUTPUT = 1


class UsageError(LucioleError):
    """The arguments do not go together."""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, as every error is said, and does not repeat its usage."""

    def error(self, message: str) -> NoReturn:
        line = printable(" ".join(message.split()))
        self.exit(WRONG_USAGE, f"luciole: error: {line} ({self.prog} --help says more)\n")


def parser_for(program: str, description: str) -> argparse.ArgumentParser:
    """Make an argument parser with what all programs have."""
    parser = _Parser(
        program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"luciole {luciole.__version__}")
    return parser


def a_model() -> str:
    """Say in a help text what a model may be: all that luciole reads."""
    return f"a {readable()}"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json`` and ``--debug``."""
    parser.add_argument("--json", action="store_true", help="print JSON on standard output")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_custom(parser: argparse.ArgumentParser) -> None:
    """Declare ``--custom FILE``, for programs that run models."""
    parser.add_argument(
        "--custom",
        metavar="FILE",
        help="a Python file whose luciole.custom_operator functions compute CUSTOM operators",
    )


def add_preprocess(parser: argparse._ActionsContainer) -> None:
    """Declare ``--preprocess EXPR``, for programs that read data."""
    parser.add_argument(
        "--preprocess",
        metavar="EXPR",
        help='arithmetic on the records, for example "x/255"; by input "image=x/255; mask=none"',
    )


def add_data_bounds(parser: argparse.ArgumentParser) -> None:
    """Declare ``--data-limit BYTES`` and ``--allow-outside``, for programs that read data."""
    parser.add_argument(
        "--data-limit",
        type=int,
        metavar="BYTES",
        help="what records and labels may take in memory (default: 4 GiB)",
    )
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="a list or a folder of records may lead to files that are not below it",
    )


def _load_custom(path: str) -> None:
    """Run a user's Python file. Raises UsageError when it cannot be read or fails."""
    spec = importlib.util.spec_from_file_location("custom_operators", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: --custom takes a Python file (.py)")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:  # whatever the user's code raises
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error


def run_program(
    argv: Sequence[str] | None,
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
) -> int:
    """Parse, run, and turn whatever goes wrong into one line and an exit code."""
    arguments = parser.parse_args(with_dashes(sys.argv[1:] if argv is None else argv))
    debug = bool(getattr(arguments, "debug", False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if getattr(arguments, "custom", None):
            _load_custom(arguments.custom)
        with _results_aside(arguments):
            code = run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        console.say("luciole: interrupted")
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        console.say(f"luciole: error: {_one_line(error)}")
        return _exit_code(error)


def _results_aside(arguments: argparse.Namespace) -> AbstractContextManager[object]:
    """Let results go to standard error where the arguments say that standard output is to hold a
    file.
    """
    from luciole.files import own_descriptor

    words = [word for word in vars(arguments).values() if isinstance(word, str | os.PathLike)]
    if any(own_descriptor(word) == _STANDARD_OUTPUT for word in words):
        return redirect_stdout(sys.stderr)
    return nullcontext()


def with_dashes(argv: Sequence[str]) -> list[str]:
    """Turn ``--input_model`` into ``--input-model``: ONE's tools use underscores, others dashes."""
    return [_dashed(word) for word in argv]


def _dashed(word: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, LucioleError):
        return text
    return f"{type(error).__name__}: {text} (--debug shows where)"


def _exit_code(error: Exception) -> int:
    if isinstance(error, UsageError):
        return WRONG_USAGE
    # by name: the class lives behind the graph room, which a failing start need not have loaded
    return UNSUPPORTED if type(error).__name__ == "UnsupportedError" else FAILED
