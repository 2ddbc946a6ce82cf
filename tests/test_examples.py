"""The folder of examples: each runs in an empty folder and prints what it promises."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = {
    "compare_schemes": r"int8 +31,952 bytes  9[78]\..+\n.+\nlevels:w2a2 +11,504 bytes  9[567]\.",
    "edit_graph": r"findings: \[\]\nsame answers: True",
    "custom_operator": r"\[\[-0\.2689\d* +0\. +0\.731\d* +1\.7615\d* *\]\]",
    "c_program": r"digits\.c digits\.h\n100 images: C and Python agree",
    "look": r"LQ_FULLY_CONNECTED +2 +23,680(?s:.+)compare\.html: \d+,\d+ bytes digits\.svg: \d",
}
USED = {"digits", "metrics", "train_digits"}
"""Those that others read, that a page of the docs runs, and that only a new network needs."""


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert re.search(PRINTED[name], capsys.readouterr().out)


def test_every_example_is_run_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == PRINTED.keys() | USED
    listed = re.findall(r"^\| \[(\w+)\.py\]", (EXAMPLES / "README.md").read_text("utf-8"), re.M)
    assert set(listed) == names - {"digits"}
