"""Notebooks as pages of the site: their cells, and what these print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"


def pages() -> dict[str, str]:
    """Write the page of each notebook, by its name."""
    return {path.stem: _page(path) for path in sorted(FOLDER.glob("*.ipynb"))}


def _page(path: Path) -> str:
    cells = [_cell(cell) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    title, *rest = cells
    link = f"This page is a notebook: [download {path.name}]({path.name})."
    return "\n\n".join([title, link, *rest]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    shell = source.startswith("!")
    code = source.replace("\n!", "\n").removeprefix("!") if shell else source
    printed = "".join("".join(output["text"]) for output in cell["outputs"])
    parts = [f"```{'sh' if shell else 'python'}\n{code}\n```"]
    return "\n\n".join(parts + ([f"```text\n{printed.rstrip()}\n```"] if printed else []))
