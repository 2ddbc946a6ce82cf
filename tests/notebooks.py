"""Run the notebooks of ``docs/notebooks``: ``python -m tests.notebooks [--update] [NOTEBOOKS]``.

The code cells of a notebook run in order, in one session, from an empty folder; lines that begin
with ``!`` run in a shell. What a cell prints has to be what the notebook keeps, but for figures;
``--update`` writes what it prints now. A notebook whose metadata name a module that is not
installed (``"needs"``) is not run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tests.docs_run import ROOT, Block, Session, masked

FOLDER = ROOT / "docs/notebooks"
Notebook = dict[str, Any]


class Cell(NamedTuple):
    """A code cell that ran: why it failed, what it printed, and what the notebook keeps of it,
    None where it keeps nothing because the cell did not run when the notebook was written.
    """

    reason: str | None
    printed: str
    kept: str | None


def read(path: Path) -> Notebook:
    """Read a notebook. Raises ValueError for another format than nbformat 4."""
    notebook: Notebook = json.loads(path.read_text("utf-8"))
    if notebook["nbformat"] != 4:
        raise ValueError(f"{path.name}: nbformat is {notebook['nbformat']}, 4 is read")
    return notebook


def missing(notebook: Notebook) -> str | None:
    """Return the module that a notebook needs and that is not installed, None where it is."""
    needs: str | None = notebook["metadata"].get("needs")
    return needs if needs and find_spec(needs) is None else None


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """List the cells that hold code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(printed: str) -> list[dict[str, Any]]:
    """Make the outputs that a notebook keeps of a cell."""
    lines = printed.splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def kept(cell: dict[str, Any]) -> str | None:
    """Return what a notebook says that a cell prints, None where it says nothing."""
    if cell["execution_count"] is None:
        return None
    return "".join("".join(output["text"]) for output in cell["outputs"])


def run(notebook: Notebook, folder: Path) -> Iterator[Cell]:
    """Run the code cells of a notebook in a folder, up to the first one that fails."""
    session = Session(folder, one_process=True)
    for cell in code_cells(notebook):
        source = "".join(cell["source"])
        shell = source.startswith("!")
        body = source.replace("\n!", "\n").removeprefix("!") if shell else source
        block = Block("sh" if shell else "python", None, body, None, 0)
        reason, printed = session.output(block)
        yield Cell(reason, printed, kept(cell))
        if reason is not None:
            return


def differs(cell: Cell) -> str | None:
    """Return the first line that a cell printed otherwise than the notebook keeps it."""
    if cell.kept is None:
        return None
    printed, said = ([masked(line) for line in t.splitlines()] for t in (cell.printed, cell.kept))
    if printed == said:
        return None
    pairs = zip([*printed, "nothing"], [*said, "nothing"], strict=False)
    return next((f"printed {a!r}, kept {b!r}" for a, b in pairs if a != b), "lines are missing")


def _update(path: Path, notebook: Notebook, folder: Path) -> str | None:
    for number, (cell, ran) in enumerate(
        zip(code_cells(notebook), run(notebook, folder), strict=False), start=1
    ):
        if ran.reason is not None:
            return ran.reason
        cell["outputs"], cell["execution_count"] = outputs(ran.printed), number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return None


def wrong(notebook: Notebook, folder: Path) -> str | None:
    """Run a notebook. Returns the first thing that is not as it says, None where all is."""
    for number, cell in enumerate(run(notebook, folder), start=1):
        fault = cell.reason or differs(cell)
        if fault is not None:
            return f"code cell {number}: {fault}"
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run notebooks, all of them unless some are named. Returns 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.notebooks", description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--update", action="store_true", help="keep what is printed")
    arguments = parser.parse_args(argv)
    faults = 0
    for path in arguments.notebooks or sorted(FOLDER.glob("*.ipynb")):
        notebook = read(path)
        needed = missing(notebook)
        if needed is not None:
            print(f"{path.name}: not run: {needed} is not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            update = arguments.update
            fault = (
                _update(path, notebook, Path(folder)) if update else wrong(notebook, Path(folder))
            )
        print(f"{path.name}: {fault or 'ok'}")
        faults += fault is not None
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
