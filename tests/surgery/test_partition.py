"""Parts of one backend each: they run as the whole model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir.errors import FormatError
from tests.surgery.networks import pixels, residual
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]

PART = """[partition]
backends=cpu,npu
default=cpu
comply={comply}

[{section}]
{lines}
"""


def part_file(lines: str, comply: str = "opcode") -> Path:
    text = PART.format(comply=comply, section=comply.upper(), lines=lines)
    Path("net.part").write_text(text)
    return Path("net.part")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luciole.save(residual(), "net.circle")
    return tmp_path


@pytest.mark.parametrize(
    ("lines", "comply"),
    [("CONV_2D=npu", "opcode"), ("ADD=npu\nRESHAPE=npu", "opcode"), ("inner=npu", "opname")],
)
def test_parts_hold_one_backend_each_and_run_as_the_whole(lines: str, comply: str) -> None:
    parts = luciole.partition("net.circle", part_file(lines, comply))
    named = {line.partition("=")[0] for line in lines.splitlines()}
    for group, model in zip(parts.groups, parts.models, strict=True):
        keys = {op.kind if comply == "opcode" else op.name for op in model.graph.ops}
        assert (group == "npu") == bool(keys & named)
        assert group != "npu" or keys <= named
    assert len(parts.groups) > 1
    assert all(one != other for one, other in zip(parts.groups, parts.groups[1:], strict=False))
    (whole,) = luciole.run("net.circle", pixels(6)).values()
    (parted,) = luciole.run(parts, pixels(6)).values()
    np.testing.assert_array_equal(parted, whole)


def test_the_programs_write_files_by_the_names_of_one(capsys: Capture) -> None:
    part_file("FULLY_CONNECTED=npu")
    assert call(capsys, "split", "net.circle", "--partition", "net.part").code == 0
    files = sorted(path.name for path in Path().glob("net.0*"))
    assert files == ["net.00001_cpu.circle", "net.00002_npu.circle"]
    np.save("x.npy", pixels(3))
    for model in ("net.circle", "net.conn.json"):
        assert call(capsys, "run", model, "--data", "x.npy", "-o", f"{model}.npy").code == 0
    np.testing.assert_array_equal(np.load("net.circle.npy"), np.load("net.conn.json.npy"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"\[partition\] needs backends, default: 'partition'"),
        ("[partition]\nbackends=cpu", r"\[partition\] needs backends, default: 'default'"),
        (
            PART.format(comply="kind", section="KIND", lines=""),
            "comply is 'kind': opcode or opname",
        ),
        (PART.format(comply="opcode", section="OPCODE", lines="ADD=gpu"), "ADD is in 'gpu', backe"),
    ],
)
def test_partition_refuses_files_that_say_no_groups(text: str, sentence: str) -> None:
    Path("net.part").write_text(text)
    with pytest.raises(FormatError, match=sentence):
        luciole.partition("net.circle", "net.part")


def test_split_refuses_both_and_neither_of_its_options(capsys: Capture) -> None:
    part_file("ADD=npu")
    argv = ("split", "net.circle", "-o", "parts.json")
    assert "say what parts there are" in call(capsys, *argv).error(2)
    both = ("--at", "conv", "--partition", "net.part")
    assert "say what parts there are" in call(capsys, *argv, *both).error(2)
    alone = ("--at", "conv", "--default", "cpu")
    assert "--default goes with --partition FILE" in call(capsys, *argv, *alone).error(2)
