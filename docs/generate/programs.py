"""A page for each program, written from the parser that it reads its arguments with."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from luciole.tools.main import PROGRAMS, parser_of

WIDTH = 76
"""Characters of a line of usage."""


_COMMON = "options"
"""argparse's title of the group that holds what all programs take; it comes last."""


def pages() -> dict[str, str]:
    """Write the page of every program, by the program's name."""
    return {name: "\n".join(_page(name)) + "\n" for name in PROGRAMS}


def table() -> str:
    """List the programs, with links to pages beside the one that shows the list."""
    rows = ["| program | also called | what it does |", "|---|---|---|"]
    for name, program in PROGRAMS.items():
        summary = program.summary.partition(" (also: ")[0]
        other = own_name(name)
        also = "" if other == f"luciole {name}" else f"`{other}`"
        rows.append(f"| [`luciole {name}`]({name}.md) | {also} | {_cell(summary)} |")
    return "\n".join(rows)


def own_name(name: str) -> str:
    """Name a program as it calls itself when it is started without ``luciole``."""
    return str(inspect.signature(_main(name)).parameters["program"].default)


def _main(name: str) -> Callable[..., int]:
    module = importlib.import_module(f"luciole.tools.{PROGRAMS[name].module}")
    main: Callable[..., int] = module.main
    return main


def _page(name: str) -> Iterator[str]:
    parser = parser_of(name)
    parser.formatter_class = partial(argparse.HelpFormatter, width=WIDTH)
    yield f"# luciole {name}"
    if own_name(name) != f"luciole {name}":
        yield f"\nThe same program: `{own_name(name)}`."
    yield f"\n{(parser.description or '').strip()}"
    yield f"\n```text\n{parser.format_usage().rstrip()}\n```"
    if parser.epilog:
        yield f"\n```text\n{parser.epilog.rstrip()}\n```"
    for group in sorted(parser._action_groups, key=lambda g: g.title == _COMMON):
        yield from _group(group)


def _group(group: argparse._ArgumentGroup) -> Iterator[str]:
    shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
    if shown:
        yield f"\n## {(group.title or 'options').capitalize()}"
        yield "\n| argument | meaning |\n|---|---|"
        yield from (f"| {_names(action)} | {_cell(action.help or '')} |" for action in shown)


def _names(action: argparse.Action) -> str:
    """The argument as it is typed: its spellings, and what follows."""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    follows = "" if action.nargs == 0 else f" {_value(action)}"
    return "<br>".join(f"`{spelling}{follows}`" for spelling in action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.metavar is None:
        return _alternatives([str(choice) for choice in action.choices])
    return str(action.metavar or action.dest.upper())


def _alternatives(choices: Sequence[str]) -> str:
    return "{" + ",".join(choices) + "}"


def _cell(text: str) -> str:
    """Text that may stand in a table's cell."""
    return text.replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")
