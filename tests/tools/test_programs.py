"""What all programs have in common: help, exit codes, spelling of options, ways to start."""

from __future__ import annotations

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path

import pytest

import luciole
from luciole.tools import dump, lquantizer
from luciole.tools.common.command import byte_count, with_dashes
from luciole.tools.main import PROGRAMS
from tests.tools.running import call, spawn

Capture = pytest.CaptureFixture[str]


def test_without_arguments_the_programs_are_listed(capsys: Capture) -> None:
    outcome = call(capsys)
    assert outcome.code == 2
    for name, program in PROGRAMS.items():
        assert f"{name} " in outcome.out
        assert program.summary in outcome.out


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_of_the_umbrella(capsys: Capture, flag: str) -> None:
    outcome = call(capsys, flag)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("usage: luciole PROGRAM")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_of_every_program(capsys: Capture, name: str, flag: str) -> None:
    outcome = call(capsys, name, flag)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"usage: luciole {name} ")
    assert "--json" in outcome.out
    assert "--debug" in outcome.out


@pytest.mark.parametrize("words", [["--version"], *([name, "--version"] for name in PROGRAMS)])
def test_version(capsys: Capture, words: list[str]) -> None:
    outcome = call(capsys, *words)
    assert (outcome.code, outcome.out) == (0, f"luciole {luciole.__version__}\n")


def test_help_of_the_programs_with_names_of_their_own(capsys: Capture) -> None:
    for name, main in (("lquantizer", lquantizer.main), ("circle-dump", dump.main)):
        outcome = call(capsys, "--help", main=main)
        assert outcome.code == 0
        assert outcome.out.startswith(f"usage: {name} ")


def test_help_imports_nothing_heavy() -> None:
    """It answers at once: none of the big packages, nor our own rooms behind them, is loaded."""
    script = (
        "import sys, runpy\n"
        "sys.argv = ['luciole', 'quantize', '--help']\n"
        "try: runpy.run_module('luciole', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'h5py', 'tensorflow', 'rich', 'luciole.ir'}\n"
        "print('HEAVY', sorted(heavy & sys.modules.keys()))\n"
    )
    outcome = spawn(program=["-c", script])
    assert outcome.out.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["paint"], "argument PROGRAM: invalid choice: 'paint'"),
        (["--paint"], "the following arguments are required: PROGRAM"),
        (["eval"], "the following arguments are required: MODEL, --data"),
        (["eval", "m.circle", "--data"], "argument --data: expected one argument"),
        (["eval", "m.circle", "--data", "x", "--limit", "many"], "argument --limit: invalid int"),
        (["eval", "m.circle", "--data", "x", "--paint"], "unrecognized arguments: --paint"),
        (["import", "m.tflite"], "the following arguments are required: -o/--output"),
        (["dump"], "the following arguments are required: MODEL"),
        (["verify", "a", "b"], "unrecognized arguments: b"),
        (["quantize", "--encode_bits", "5"], "argument --encode-bits: 5: 1 to 4 are possible"),
        (["demo", "--calibration", "x"], "argument --calibration: invalid int value: 'x'"),
    ],
)
def test_programs_refuse_wrong_usage(capsys: Capture, argv: list[str], sentence: str) -> None:
    text = call(capsys, *argv).error(code=2)
    assert text.startswith(sentence)
    assert text.endswith(" --help says more)")


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["evl"], "did you mean eval?"),
        (["quantise", "--help"], "did you mean quantize?"),
        (["eval", "m.circle", "--dta", "x"], "--dta is no option, did you mean --data?"),
        (["quantize", "--input_modl=m"], "--input-modl is no option, did you mean --input-model?"),
        (["quantize", "--bits", "2"], "--bits is no option, did you mean --encode-bits?"),
        (["quantize", "--method", "publishd"], "did you mean published?"),
    ],
)
def test_programs_say_what_may_have_been_meant(capsys: Capture, argv: list[str], hint: str) -> None:
    text = call(capsys, *argv).error(code=2)
    assert hint in text
    assert len(text.splitlines()) == 1


def test_the_help_shows_that_bits_may_be_a_word(capsys: Capture) -> None:
    assert "--encode-bits 1-4|WORD" in call(capsys, "quantize", "--help").out


@pytest.mark.parametrize("argv", [["zzzzz"], ["eval", "m", "--data", "x", "--zzzzz"], ["eval"]])
def test_programs_guess_nothing_where_nothing_is_alike(capsys: Capture, argv: list[str]) -> None:
    assert "did you mean" not in call(capsys, *argv).error(code=2)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("60000", 60_000), ("60KB", 60_000), ("60kb", 60_000), ("58.6KiB", 60_006)),
        *(("1.5 MB", 1_500_000), ("2MiB", 2 << 20), ("1G", 10**9), ("3B", 3), ("0.1MB", 100_000)),
    ],
)
def test_sizes_have_units(text: str, count: int) -> None:
    assert byte_count(text) == count


@pytest.mark.parametrize("text", ["", "KB", "1.KB", "1e3", "2 KBs", "0x10", "1,5MB"])
def test_byte_count_refuses_what_is_no_size(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^{re.escape(repr(text))} is no size: write"):
        byte_count(text)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--input_model", "a_b.circle"], ["--input-model", "a_b.circle"]),
        (["--input_model=a_b.circle"], ["--input-model=a_b.circle"]),
        (["-o", "a_b", "x_y"], ["-o", "a_b", "x_y"]),
        (["--a-b_c"], ["--a-b-c"]),
    ],
)
def test_underscores_mean_dashes_in_names_only(given: Sequence[str], meant: list[str]) -> None:
    assert with_dashes(given) == meant


@pytest.mark.parametrize("sign", ["-", "_"])
def test_options_are_taken_with_dashes_and_underscores(
    capsys: Capture, folder: Path, sign: str
) -> None:
    argv = [
        "quantize",
        f"--input{sign}model=model.circle",
        f"--output{sign}model",
        "answer_1.circle",
        f"--input{sign}data",
        "train.npy",
        f"--encode{sign}bits=1",
    ]
    assert call(capsys, *argv).code == 0
    assert (folder / "answer_1.circle").exists()


def test_python_m_luciole_is_luciole(capsys: Capture, folder: Path) -> None:
    for argv in (["dump", "model.circle"], ["verify", "model.circle", "--json"], ["--help"]):
        outcome = spawn(*argv)
        assert outcome == call(capsys, *argv)
        assert outcome.code == 0


def test_exit_codes_reach_the_shell(folder: Path, unsupported: Path) -> None:
    assert spawn("verify", "missing.circle").error(1) == "missing.circle: No such file or directory"
    assert "invalid choice: 'paint'" in spawn("paint").error(2)
    text = spawn("eval", unsupported, "--data", "train.npy").error(3)
    assert text.startswith("cannot run CUSTOM(Mystery) (2x)")


def test_debug_shows_where_it_went_wrong(folder: Path) -> None:
    outcome = spawn("verify", "missing.circle", "--debug")
    assert outcome.code == 1
    assert outcome.err.startswith("Traceback")
    assert "missing.circle: No such file or directory" in outcome.err.splitlines()[-1]


def test_json_has_nothing_beside_it_on_standard_output(capsys: Capture, folder: Path) -> None:
    for argv in (
        ["verify", "model.circle"],
        ["dump", "model.circle"],
        ["import", "model.circle", "-o", "again.circle"],
        ["eval", "model.circle", "--data", "test.npz"],
    ):
        outcome = call(capsys, *argv, "--json")
        assert outcome.code == 0
        assert isinstance(json.loads(outcome.out), dict)
