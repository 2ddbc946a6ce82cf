"""``luciole completion``: scripts that shells take."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from luciole.tools.completion import OWN_NAMES, described
from luciole.tools.main import PROGRAMS
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]


def completed(script: str, program: str, *words: str) -> set[str]:
    """What bash offers for the last of some words."""
    line = " ".join(f"'{word}'" for word in (program, *words))
    ask = (
        f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; COMP_TYPE=9\n"
        f"$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_programs_and_options(capsys: Capture) -> None:
    pytest.importorskip("shtab")
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    script = call(capsys, "completion", "bash").out
    assert completed(script, "luciole", "") >= set(PROGRAMS)
    assert completed(script, "luciole", "ev") == {"eval"}
    assert completed(script, "luciole", "eval", "--da") == {"--data", "--data-limit"}
    script = call(capsys, "completion", "bash", "--program", "lquantizer").out
    assert completed(script, "lquantizer", "--enc") == {"--encode-bits"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
@pytest.mark.parametrize("program", OWN_NAMES)
def test_every_shell_gets_a_script(capsys: Capture, shell: str, program: str) -> None:
    pytest.importorskip("shtab")
    outcome = call(capsys, "completion", shell, "--program", program)
    assert (outcome.code, outcome.err) == (0, "")
    assert program in outcome.out


def test_the_parser_of_luciole_has_all_programs() -> None:
    arguments = described("luciole").parse_args(["eval", "m.circle", "--data", "x"])
    assert (arguments.model, arguments.data) == ("m.circle", "x")


def test_completion_refuses_without_its_package(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    text = call(capsys, "completion", "bash").error(1)
    assert text.startswith('completion needs the package shtab: pip install ".[completion]"')
