"""``python -m benchmarks``: parts, what is kept of them, the latency table; nothing is timed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import luciole
from benchmarks import __main__ as suite
from benchmarks import cold_start, large_file, large_tools, latency
from luciole.tools.common.timing import Limits

TEXT = """first
network | K | us
---|---|---
a | 1 | 2.50
b | 2 | 3.50

| x |  |
|---|:--:|
| 1 | 2 |
last | not a table
""".splitlines()


def test_tables_are_found_in_what_a_part_prints() -> None:
    first, second = suite.tables_in(TEXT)
    assert first == [["network", "K", "us"], ["a", "1", "2.50"], ["b", "2", "3.50"]]
    assert second[:2] == [["x", ""], ["1", "2"]]
    assert suite.tables_in(["no", "a | b"]) == []


def test_every_part_is_a_program_or_is_left_out() -> None:
    names = [part.name for part in suite.PARTS]
    assert len(set(names)) == len(names)
    for part in suite.PARTS:
        command = part.command(Path("out"), quick=True)
        assert command[:3] == [sys.executable, "-m", f"benchmarks.{part.name}"]
        assert ("--output" in command) == part.writes


def test_a_part_is_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Printing(suite.Part):
        def command(self, folder: Path, quick: bool) -> list[str]:
            program = "import sys; print(sys.argv[1]); sys.exit(3)"
            return [sys.executable, "-c", program, "\n".join(TEXT)]

    assert suite.run_part(Printing("printing"), tmp_path, quick=True) == 3
    assert capsys.readouterr().out.splitlines() == TEXT
    kept = json.loads((tmp_path / "printing.json").read_text())
    assert (kept["text"], kept["exit_code"]) == (TEXT, 3)
    assert kept["tables"] == suite.tables_in(TEXT)
    assert kept["machine"]["cpu"]


def test_the_suite_refuses_an_unknown_part(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        suite.main(["--only", "speed"])
    said = capsys.readouterr().err
    assert said.startswith("benchmarks: error: 'speed' is no part: there is latency,")


def test_a_part_without_its_data_is_left_out(tmp_path: Path) -> None:
    part = suite.Part("accuracy", needs=(tmp_path / "mnist.npz",))
    assert part.missing().startswith(f"there is no {tmp_path / 'mnist.npz'}")
    assert suite.Part("nonsense").missing() == "there is no benchmarks/nonsense.py"
    assert suite.Part("latency").missing() == ""


ROWS = [
    latency.Row(f"{n}->{n}", (n, n), 1, bits, bits * n / 100, bits * n / 100 + 2, peers, peers)
    for n in (64, 128)
    for bits in latency.WIDTHS
    for peers in [{"int8": n / 50, "dynamic": n / 40, "float32": n / 10}]
]


def test_ratios_of_the_latency_table() -> None:
    named = dict(zip(latency.headings(), latency.cells(ROWS[1]), strict=False))
    assert named["K"] == "2"
    assert named["us"] == "1.28"
    assert named["float32 / us"] == "5.00x"
    assert latency.cells(ROWS[1])[-1] == "0.39x"  # 1.28 us beside 3.28 us, both with copies
    assert len(latency.headings()) == len(latency.cells(ROWS[0]))


def test_the_latency_plot_is_a_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    latency.plot(ROWS, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


def test_nanoseconds_for_each_further_operator() -> None:
    overhead = cold_start.Overhead("luciole", 0.5, 0.5 + 0.003 * (cold_start.LENGTH - 1), 200)
    assert overhead.operator_ns == pytest.approx(3)


def test_a_large_file_is_mapped(tmp_path: Path) -> None:
    """It takes no place on disk, and none in memory either."""
    path = tmp_path / "large.circle"
    large_file.write_sparse(path, 400_000_000)
    found = path.stat()
    assert found.st_size > 399_000_000
    assert 512 * found.st_blocks < 4_000_000
    _, _, before, after = large_file.load(path)
    assert after - before < 40_000_000
    weights = luciole.load(path).graph.ops[0].operands[1]
    assert weights is not None
    assert weights.data is not None
    assert weights.data.nbytes > 399_000_000


def test_the_chain_runs(tmp_path: Path) -> None:
    limits = Limits(runs=1, min_seconds=0, max_seconds=0, warmup_runs=0, warmup_seconds=0)
    found = {overhead.runtime: overhead for overhead in cold_start.overheads(limits, tmp_path)}
    assert "luciole" in found
    assert all(overhead.one_us > 0 for overhead in found.values())
    model = cold_start.chain(cold_start.LENGTH)
    assert len(model.graph.ops) == cold_start.LENGTH


def test_compiling_a_large_network_takes_bounded_memory(tmp_path: Path) -> None:
    """A C compiler that is given all tables takes 40 times their size."""
    model, _ = large_tools.images(8_000_000)
    luciole.save(model, tmp_path / "images.circle")
    words = large_tools.commands(tmp_path, "images")["compile"]
    code, _, peak = large_tools.run(words, tmp_path / "said")
    assert (code, peak < 280_000_000) == (0, True), (tmp_path / "said").read_text()
    assert (tmp_path / "images_out" / "images.c").stat().st_size > 30_000_000
