"""The passes, found as the files that they are."""

from __future__ import annotations

from pathlib import Path

from luciole.ir import passes


def directives() -> str:
    """Ask mkdocstrings for each module of ``luciole.ir.passes``, in the order of the alphabet."""
    (folder,) = passes.__path__
    names = sorted(path.stem for path in Path(folder).glob("[!_]*.py"))
    return "\n\n".join(_directive(f"{passes.__name__}.{name}") for name in names)


def _directive(module: str) -> str:
    title = module.rpartition(".")[2]
    options = (
        "    options: {show_root_heading: false, show_root_toc_entry: false, heading_level: 3}"
    )
    return f"## {title}\n\n::: {module}\n{options}"
