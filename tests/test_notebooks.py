"""Notebooks of docs/notebooks run, and print what they keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docs.generate import notebooks as pages
from tests import notebooks
from tests.compiler_support import needs_compiler

NAMES = sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb"))


def cell(source: str, kept: str = "", count: int | None = 1) -> dict[str, Any]:
    outputs = notebooks.outputs(kept)
    return {"cell_type": "code", "execution_count": count, "outputs": outputs, "source": [source]}


def test_there_are_three() -> None:
    assert NAMES == ["keras", "microcontroller", "pytorch"]


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_prints_what_it_keeps(name: str, tmp_path: Path) -> None:
    notebook = notebooks.read(notebooks.FOLDER / f"{name}.ipynb")
    if missing := notebooks.missing(notebook):
        pytest.skip(f"{missing} is not installed")
    assert notebooks.wrong(notebook, tmp_path) is None


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([cell("print('one 1')", "one 2\n")], None),
        ([cell("print('one')", "two\n")], "code cell 1: printed 'one', kept 'two'"),
        ([cell("x = 1"), cell("print(x)")], "code cell 2: printed '#', kept 'nothing'"),
        ([cell("x = 1", "1\n")], "code cell 1: printed 'nothing', kept '#'"),
        ([cell("print(1)", count=None), cell("print(2)", "2\n")], None),
        ([cell("y")], "code cell 1: NameError: name 'y' is not defined"),
        ([cell("!echo one\n!echo two", "one\ntwo\n")], None),
        ([cell("!exit 3")], "code cell 1: exit code 3: "),
    ],
)
def test_a_notebook_that_prints_otherwise_is_found(
    cells: list[dict[str, Any]], fault: str | None, tmp_path: Path
) -> None:
    assert notebooks.wrong({"cells": cells}, tmp_path) == fault


@pytest.mark.parametrize("name", NAMES)
def test_the_site_has_a_page_of_every_cell(name: str) -> None:
    page = pages.pages()[name]
    for part in notebooks.read(notebooks.FOLDER / f"{name}.ipynb")["cells"]:
        for line in "".join(part["source"]).splitlines():
            assert line.removeprefix("!") in page
    assert f"{name}.ipynb" in page
