"""Answer by the names of ONE's programs: read their options, and run ours instead.

Every entry point is ``main``; the name by which it is started says which program of ONE's it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from luciole import __version__
from luciole.tools.common.command import FINE, UsageError, parser_for, read_words
from luciole.tools.main import run_named
from luciole.tools.one.alias import Alias, Option
from luciole.tools.one.sections import section_words
from luciole.tools.one.table import forms, names
from luciole.tools.one.translation import Call, Values, calls_of


def main(argv: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run the programs of ours that do what one of ONE's would, until one fails."""
    name = Path(sys.argv[0]).name if program is None else program
    if name not in names():
        parser_for(name, "").error(f"{name} is no program of ONE's: there are {', '.join(names())}")
    words = list(sys.argv[1:] if argv is None else argv)
    for call in translated(name, words):
        code = run_named(call.program, call.words, name)
        if code != FINE:
            return code
    return FINE


def translated(name: str, words: Sequence[str], place: str = "") -> list[Call]:
    """Return the calls of ours for a command of ONE's. Ends the program, in a sentence that begins
    with the place where the words stand, for what ONE's does not take, and for what has no
    counterpart.
    """
    usual = forms(name)[-1]
    parser = parser_of(usual)
    try:
        if usual.driver:
            words = _with_section(usual, words)
        alias = _form(name, words)
        parser = parser_of(alias)
        return calls_of(alias, values_of(alias, read_words(parser, words, place, dashes=False)))
    except UsageError as error:
        parser.error(str(error))


def _form(name: str, words: Sequence[str]) -> Alias:
    """Find the form of a program that an option among the words asks for."""
    *special, usual = forms(name)
    return next((alias for alias in special if alias.when in words), usual)


def _with_section(alias: Alias, words: Sequence[str]) -> list[str]:
    """Put the words of a section of a configuration in front of the others, which are taken where
    both name an option.
    """
    known = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    known.add_argument("-C", "--config")
    known.add_argument("-S", "--section", default=alias.name)
    asked, remaining = known.parse_known_args(list(words))
    if asked.config is None:
        return list(words)
    return [*section_words(asked.config, asked.section, alias.name), *remaining]


def parser_of(alias: Alias) -> argparse.ArgumentParser:
    """Make the parser of a program of ONE's, with its options as it spells them."""
    about = f"{alias.name} of Samsung ONE {alias.summary}; `luciole {alias.program}` does it here."
    parser = parser_for(alias.name, about)
    parser.formatter_class = argparse.HelpFormatter
    parser.add_argument("-v", action="version", version=f"luciole {__version__}", help="likewise")
    if alias.driver:
        for names, meaning in (("-C --config", "FILE"), ("-S --section", "NAME")):
            parser.add_argument(*names.split(), metavar=meaning, help="a section of onecc's .cfg")
    for option in alias.all_options():
        _add(parser, option)
    return parser


def _add(parser: argparse.ArgumentParser, option: Option) -> None:
    help_text = counterpart(option).replace("%", "%%")
    if not option.name.startswith("-"):
        parser.add_argument(option.name, metavar=option.name, help=help_text)
    elif not option.values:
        parser.add_argument(*option.names, dest=option.name, action="store_true", help=help_text)
    else:
        parser.add_argument(
            *option.names,
            dest=option.name,
            action="append",
            nargs=len(option.values),
            metavar=option.values if len(option.values) > 1 else option.values[0],
            required=option.required,
            help=help_text,
        )


def values_of(alias: Alias, arguments: argparse.Namespace) -> Values:
    """Read the options that are there: the last of several that name the same, unless all count."""
    values: dict[str, Sequence[tuple[str, ...]]] = {}
    for option in alias.all_options():
        value = vars(arguments)[option.name]
        if isinstance(value, str):
            values[option.name] = [(value,)]
        elif value is True:
            values[option.name] = [()]
        elif value:
            every = [tuple(one) for one in value]
            values[option.name] = every if option.repeated else every[-1:]
    return values


def counterpart(option: Option) -> str:
    """Describe the counterpart of an option in words."""
    here = option.here
    if here is None:
        return f"refused: {option.note}"
    if isinstance(here, dict):
        taken = ", ".join(f"{word}: {words}" if words else word for word, words in here.items())
        text = f"here {taken}"
    else:
        text = f"here {here}" if here else "holds already"
    return f"{text} ({option.note})" if option.note else text
