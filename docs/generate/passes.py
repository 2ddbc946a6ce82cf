"""The passes, found by their names: a table of all, and the docstring of each."""

from __future__ import annotations

import re

from luciole.ir.passes.registry import NamedPass, all_passes


def directives() -> str:
    """Write a table of all passes, and ask mkdocstrings for each module."""
    return "\n\n".join([table(), *(_directive(one) for one in all_passes().values())])


def table() -> str:
    """Write a line for each pass: its name, its folder, what it rewrites to what, and when."""
    rows = ["| pass | folder | before -> after | run |", "|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, all_passes().values())])


def _row(one: NamedPass) -> str:
    run = "on request" if one.call.on_request else "for .circle" if one.needs_circle else "always"
    summary = re.sub(r"\((?=[A-Z])", "(<wbr>", one.summary.replace("|", "\\|"))
    return f"| [`{one.name}`](#{one.name}) | {one.folder} | {summary} | {run} |"


def _directive(one: NamedPass) -> str:
    title, module = one.name, f"luciole.ir.passes.{one.folder}.{one.name}"
    options = (
        "    options: {show_root_heading: false, show_root_toc_entry: false, heading_level: 3}"
    )
    return f"## {title}\n\n::: {module}\n{options}"
