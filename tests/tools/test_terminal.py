"""Names come from untrusted files: no program lets them talk to the terminal."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Graph, Model
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.printable import printable
from luciole.tools.common import console
from tests.networks import random
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]
HOSTILE = "\x1b]0;title\x07\x1b[31m[bold]\nnext line\r\u202e"
RUNS = {
    "dump": ["dump", "model.circle"],
    "summary": ["dump", "model.circle", "--summary"],
    "verify": ["verify", "model.circle"],
    "eval": ["eval", "model.circle", "--data", "x.npz", "--against", "model.circle"],
    "diff": ["diff", "model.circle", "other.circle", "--data", "x.npz"],
    "bench": ["bench", "model.circle", "--num-runs=1", "--min-secs=0", "--warmup-min-secs=0"],
    "quantize": [
        *("quantize", "--input_model", "model.circle", "--output_model", "small.circle"),
        *("--input_data", "x.npz"),
    ],
    "chef": ["chef", "--reverse", "model.circle"],
}
FAILURES = {
    "missing": ["diff", "model.circle", f"{HOSTILE}.circle", "--data", "x.npz"],
    "usage": ["diff", "--data", "x.npz", f"--{HOSTILE}"],
    "refused": ["eval", "model.circle", "--data", "bad.npz", "--against", "model.circle"],
}


def model(name: str) -> Model:
    model = Model(description=HOSTILE)
    graph = model.add_graph(Graph(HOSTILE))
    x = graph.add_input(f"{HOSTILE}in", (1, 8))
    weights = graph.add_constant(f"{HOSTILE}w", random(1, 4, 8))
    graph.outputs = [graph.append(FullyConnected(x, weights), f"{HOSTILE}{name}").output]
    return model


@pytest.mark.parametrize("name", RUNS | FAILURES)
def test_no_program_prints_what_is_no_text(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, output in (("model.circle", "out"), ("other.circle", "out2")):
        luciole.save(model(output), file)
    np.savez("x.npz", x=random(2, 32, 8))
    np.savez("bad.npz", x=random(2, 32, 9))
    outcome = call(capsys, *(RUNS | FAILURES)[name])
    assert (outcome.code == 0) == (name in RUNS), outcome
    for line in (outcome.out + outcome.err).split("\n"):
        assert line.isprintable(), line
        assert not line.startswith("next line")


def test_tables_on_a_terminal_show_names_as_they_are(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    console.print_table([("name",), (HOSTILE,)], title=HOSTILE)
    found = capsys.readouterr().out
    assert "\x1b]" not in found
    assert "\x07" not in found
    assert "\u202e" not in found
    assert found.count("[bold]") == 2


def test_texts_that_print_stand_as_they_are() -> None:
    assert printable("größe/日本;a\\b [x]") == "größe/日本;a\\b [x]"
    assert printable("a\tb\x1b\n\udcff\u2028") == "a\\tb\\x1b\\n\\udcff\\u2028"


def test_parts_of_short_runs_are_told_in_nanoseconds() -> None:
    times = [console.part_time_text(us) for us in (0.0412, 0.9994, 1.04, 1234.0)]
    assert times == ["41 ns", "999 ns", "1.0 us", "1.23 ms"]


def test_only_the_console_prints() -> None:
    tools = Path(console.__file__).parent
    prints = [
        f"{path.relative_to(tools)}:{node.lineno}"
        for path in sorted(tools.rglob("*.py"))
        if path.name != "console.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert prints == []


def test_a_narrow_terminal_gets_every_digit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(console, "columns", lambda: 40)
    rows = [("layer", "before", "after", "noise"), ("conv", "1,234,567", "123,456", "100.25 dB")]
    console.print_table(rows)
    printed = capsys.readouterr().out
    assert [cell for row in rows for cell in row if cell not in printed] == []
