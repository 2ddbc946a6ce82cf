"""Tables of ONE's programs and their options, from the table that translates them."""

from __future__ import annotations

from collections.abc import Iterator

from luciole.tools.one.alias import Alias, Option
from luciole.tools.one.switches import OTHERS, SAME, SWITCHES
from luciole.tools.one.table import ALIASES, WITHOUT, forms, names


def programs() -> str:
    """List the programs of ONE's: which of ours runs, or why none does."""
    rows = ["| in ONE | here | what it does |", "|---|---|---|"]
    rows += [
        f"| `{name}` | `luciole {forms(name)[-1].program}` | {_summary(name)} |" for name in names()
    ]
    rows += [f"| `{name}` | none | {reason} |" for name, reason in WITHOUT.items()]
    return "\n".join(rows)


def _summary(name: str) -> str:
    return "; ".join(alias.summary for alias in reversed(forms(name)))


def options() -> str:
    """Write a table of the options of each program, and one of the switches of two."""
    parts = [_table(f"`{_title(alias)}`", _own(alias)) for alias in ALIASES]
    same = ", ".join(f"`--{name}`" for name in SAME)
    switches = f"Each of these is a pass of that name, `--passes NAME`: {same}."
    parts.append(_table("Switches of `one-optimize` and `circle2circle`", OTHERS, switches))
    return "\n\n".join(parts)


def _title(alias: Alias) -> str:
    return f"{alias.name} {alias.when}".strip()


def _own(alias: Alias) -> Iterator[Option]:
    return (option for option in alias.all_options() if option not in SWITCHES)


def _table(title: str, described: Iterator[Option] | tuple[Option, ...], text: str = "") -> str:
    rows = [f"### {title}\n", *([f"{text}\n"] if text else [])]
    rows += ["| option | here | note |", "|---|---|---|"]
    return "\n".join([*rows, *map(_row, described)])


def _row(option: Option) -> str:
    values = "".join(f" {value}" for value in option.values)
    spelled = ", ".join(f"`{name}`" for name in option.names)
    return f"| {spelled}{values} | {_here(option)} | {_cell(option.note)} |"


def _here(option: Option) -> str:
    here = option.here
    if here is None:
        return "refused"
    if isinstance(here, str):
        return f"`{here}`" if here else "holds already"
    return "<br>".join(
        f"`{word}`: {f'`{it}`' if it else 'holds already'}" for word, it in here.items()
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
