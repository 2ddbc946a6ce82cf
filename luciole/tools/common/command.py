"""Start and end every program: arguments, one-line errors, exit codes."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import NoReturn

import luciole
from luciole.schema.errors import ChoiceError, LucioleError
from luciole.schema.printable import printable
from luciole.tools.common import console
from luciole.tools.common.slips import place_of

_CHOICES = re.compile(r" \(choose from .*\)")
"""The list of all choices, behind a word that is none of them."""

FINE, FAILED, WRONG_USAGE, UNSUPPORTED, INTERRUPTED = 0, 1, 2, 3, 130

_STANDARD_OUTPUT = 1


class UsageError(ChoiceError):
    """The arguments do not go together."""


class _Parser(argparse.ArgumentParser):
    """Says an error in one line, as every program does, and the word that may have been meant; does
    not repeat its usage.
    """

    place: str = ""
    """Where the words stand, in front of an error."""
    _words: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]  # argparse declares overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        hint = self._hint(message)
        said = _CHOICES.sub("", message) if hint else message
        line = printable(" ".join(f"{self.place} {said}".split())) + hint
        self.exit(WRONG_USAGE, f"luciole: error: {line} ({self.prog} --help says more)\n")

    def _hint(self, message: str) -> str:
        """Name the option or choice that is written almost like a word that is none."""
        for word in (w.partition("=")[0] for w in self._words):
            options = [o for o in self._option_string_actions if o.startswith("--")]
            strange = word.startswith("--") and not any(o.startswith(word) for o in options)
            if strange and (likely := similar(word, options)):
                return f": {printable(word)} is no option, did you mean {likely}?"
        for action in self._actions:
            chosen = re.search(r"invalid choice: '([^']*)'", message)
            names = "/".join(action.option_strings) or str(action.metavar)
            if chosen and action.choices and message.startswith(f"argument {names}: "):
                likely = similar(chosen[1], map(str, action.choices))
                return f", did you mean {likely}?" if likely else ""
        return ""


def read_words(
    parser: argparse.ArgumentParser, words: Sequence[str], place: str, *, dashes: bool = True
) -> argparse.Namespace:
    """Parse the words of a program that stand at some place: an error begins with it. With
    ``dashes`` underscores in options mean these.
    """
    if isinstance(parser, _Parser):
        parser.place = place
    return parser.parse_args(with_dashes(words) if dashes else words)


def similar(word: str, known: Iterable[str]) -> str:
    """Find the known word that has another one as a part between dashes, else the one that is
    written most like it, an empty text where none is.
    """
    from difflib import get_close_matches

    names, part = list(known), word.strip("-")
    whole = (name for name in names if part in name.strip("-").split("-"))
    return next(whole, None) or next(iter(get_close_matches(word, names, 1)), "")


def _version() -> str:
    """Name the version, and the processor that kernels are held to by LUCIOLE_CPU."""
    held = os.environ.get("LUCIOLE_CPU")
    return f"luciole {luciole.__version__}{f', kernels for {held}' if held else ''}"


def parser_for(program: str, description: str) -> argparse.ArgumentParser:
    """Make an argument parser with the options of all programs."""
    parser = _Parser(
        program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=_version())
    return parser


def a_model() -> str:
    """Name, for a help text, the files that may be a model: all that luciole reads."""
    from luciole.importers.reader import readable

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


def add_strip_names(parser: argparse._ActionsContainer) -> None:
    """Declare ``--strip-names``, for programs that write models."""
    parser.add_argument(
        "--strip-names",
        action="store_true",
        help="call tensors by short numbers; inputs, outputs and signatures keep their names",
    )


def add_preprocess(parser: argparse._ActionsContainer) -> None:
    """Declare ``--preprocess EXPR``, for programs that read data."""
    parser.add_argument(
        "--preprocess",
        metavar="EXPR",
        help='arithmetic on the records, for example "x/255"; by input "image=x/255; mask=none"',
    )


def add_calibration(parser: argparse._ActionsContainer) -> None:
    """Declare ``--calibration N``, for programs that learn from records."""
    parser.add_argument(
        "--calibration", type=int, metavar="N", help="learn from the first N records (default: all)"
    )


_UNITS = {"": 1, "b": 1} | {
    f"{letter}{end}": base**power
    for power, letter in enumerate("kmgt", 1)
    for end, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def byte_count(text: str) -> int:
    """Read a number of bytes: ``60000``, ``60KB`` (thousands), ``60KiB`` (times 1024), ``1.5MB``.

    Raises ArgumentTypeError for anything else.
    """
    from fractions import Fraction

    match = re.fullmatch(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    unit = None if match is None else _UNITS.get(match[2].lower())
    if match is None or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 60000, 60KB, 58.6KiB or 2MB")
    return int(Fraction(match[1]) * unit)


def add_labelled(parser: argparse.ArgumentParser) -> None:
    """Declare which of the records are used, and the labels that say their classes: ``--labels``,
    ``--ignore-label``, ``--preprocess``, ``--limit``.
    """
    parser.add_argument(
        "--labels", metavar="NAME", help="the labels: an array of the data file, or FILE[:NAME]"
    )
    parser.add_argument(
        "--ignore-label",
        type=int,
        metavar="N",
        help="a label that is no class, 255 in maps of segmentation: its answers count nowhere",
    )
    add_preprocess(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N records")


def add_metric(parser: argparse._ActionsContainer) -> None:
    """Declare ``--metric``."""
    parser.add_argument(
        "--metric",
        metavar="FILE.py:FUNCTION",
        help="a function of yours that takes outputs and labels, or without labels the float "
        "network's outputs, and returns a number, larger is better",
    )


def check_batch(batch: int | None) -> None:
    """Refuse a batch without records. Raises UsageError."""
    if batch is not None and batch < 1:
        raise UsageError(f"--batch is {batch}: it is 1 or more")


def add_data_bounds(parser: argparse.ArgumentParser) -> None:
    """Declare ``--data-limit BYTES`` and ``--allow-outside``, for programs that read data."""
    parser.add_argument(
        "--data-limit",
        type=byte_count,
        metavar="BYTES",
        help="the most memory that records and labels may take (default: 4 GiB)",
    )
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="read files that a list or a folder of records leads to outside of it",
    )


def check_without_data(arguments: argparse.Namespace, *names: str, needs: str = "--data") -> None:
    """Refuse options of records where none are read: those of these ``names``, and those of
    ``add_data_bounds``. Raises UsageError.
    """
    for name in (*names, "data_limit", "allow_outside"):
        if vars(arguments)[name] not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} goes with {needs}")


def _load_custom(path: str) -> None:
    """Run a user's Python file. Raises UsageError when it cannot be read or fails."""
    spec = importlib.util.spec_from_file_location("custom_operators", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: --custom takes a Python file (.py)")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:  # whatever the user's code raises
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error


DESCRIBE = ("--describe",)
"""Arguments that make a program give its parser instead of running (see ``Described``)."""


class Described(BaseException):
    """Carries the parser of a program that was asked for nothing else."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def run_program(
    argv: Sequence[str] | None,
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
) -> int:
    """Parse, run, and turn whatever goes wrong into one line and an exit code."""
    if argv is DESCRIBE:
        raise Described(parser)
    _open_what_is_closed()
    arguments = parser.parse_args(with_dashes(sys.argv[1:] if argv is None else argv))
    _escape_what_has_no_letters()
    try:
        return _ran(arguments, run)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        console.say("luciole: interrupted")
        return INTERRUPTED
    except Exception as error:
        if getattr(arguments, "debug", False):
            raise
        console.say(f"luciole: error: {_one_line(error)}")
        return _exit_code(error)


def _open_what_is_closed() -> None:
    """Open the null device for an output that the caller closed (``>&-``, pythonw): a file that is
    opened later would get its number.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _escape_what_has_no_letters() -> None:
    """Make the terminal escape letters that its encoding lacks, so that these stop no line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _ran(arguments: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> int:
    from luciole.tools.common.apart import check_apart

    check_apart(arguments)
    if getattr(arguments, "custom", None):
        _load_custom(arguments.custom)
    with _results_aside(arguments):
        code = run(arguments)
    sys.stdout.flush()
    return code


def _results_aside(arguments: argparse.Namespace) -> AbstractContextManager[object]:
    """Write results to standard error where the arguments say that standard output is to hold a
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
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    place = place_of(error)
    if place:
        return f"{place} ({type(error).__name__}: {text}; --debug shows where)"
    return f"{type(error).__name__}: {text} (--debug shows where)"


def _exit_code(error: Exception) -> int:
    if isinstance(error, ChoiceError):
        return WRONG_USAGE
    # by name: the class lives behind the graph room, which a failing start need not have loaded
    return UNSUPPORTED if type(error).__name__ == "UnsupportedError" else FAILED
