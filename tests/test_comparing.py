"""A file that a plain scheme outdoes in bytes and accuracy: one line says so, and it is true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Model
from luciole.ir.analysis.weights import has_weights
from luciole.tools.main import main
from tests.lquantizer.networks import images, residual
from tests.networks import network, random

SAID = "gives a smaller file that is closer to the float network"


def warnings(model: Model, seed: int, scheme: str) -> list[str]:
    x = random(seed, 60, *model.graph.inputs[0].dims[1:])
    return [w for w in luciole.quantize(model, x, scheme=scheme).report.warnings if SAID in w]


def kept_db(result: luciole.Result) -> float:
    assert result.proof is not None
    ratio = result.proof.outputs[0].file.snr_db
    assert ratio is not None
    return ratio


@pytest.mark.parametrize("model", [images(), residual()], ids=["depthwise", "small convolutions"])
def test_a_scheme_that_is_said_to_be_smaller_and_closer_is(model: Model) -> None:
    x = random(1, 60, *model.graph.inputs[0].dims[1:])
    levels = luciole.quantize(model, x, scheme="levels:w2a2")
    (line,) = [w for w in levels.report.warnings if SAID in w]
    match = re.match(rf"the scheme (\S+) {SAID}: ([\d,]+) instead of ([\d,]+) bytes", line)
    assert match is not None
    plain = luciole.quantize(model, x, scheme=match[1])
    size, own = (int(match[n].replace(",", "")) for n in (2, 3))
    assert plain.report.bytes_after <= size < own == len(luciole.to_bytes(levels.model, "circle"))
    assert kept_db(plain) > kept_db(levels)


def test_nothing_is_said_of_files_that_are_smaller_or_plain() -> None:
    wide = network((64, 256, 10))
    assert sum(map(has_weights, wide.graph.ops)) == 2
    assert not warnings(wide, 2, "levels:w2a2")
    assert not warnings(images(), 1, "int:w2a8")
    assert not warnings(images(), 1, "int:w4a8")


def test_a_program_says_it_too_unless_nothing_is_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    luciole.save(residual(), "net.circle")
    np.save("x.npy", random(1, 60, 8, 6, 3))
    words = ["quantize", "net.circle", "-o", "q.circle", "--data", "x.npy", "--strip-names"]
    assert main([*words, "--scheme", "levels:w2a2"]) == 0
    assert SAID in capsys.readouterr().err
    assert main([*words, "--scheme", "levels:w2a2", "--no-proof"]) == 0
    assert SAID not in capsys.readouterr().err
