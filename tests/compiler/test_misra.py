"""Rules of MISRA C:2012 that programs in C break: those of the page, by cppcheck's addon."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from luciole.compiler.headers import pieces
from luciole.ir import Model, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.schema.enums import Padding
from luciole.tools.random_models import lq_dense
from tests.compiler.side_by_side import SideBySide
from tests.compiler.test_threads_in_c import recurrent
from tests.compiler_support import program_of
from tests.support import Affine

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "generated-c.md"


def of_bytes() -> Model:
    """Make a convolution of bytes."""
    rng, every = np.random.default_rng(0), SideBySide()
    x, weights = (rng.integers(-127, 128, shape, np.int8) for shape in ((1, 4, 4, 2), (3, 2, 2, 2)))
    grids = [Affine(0.05, 3), Affine([0.01, 0.02, 0.03]), Affine([0.0005, 0.001, 0.0015])]
    every.add(
        *(Conv2D, [x, weights, np.array([1, 2, 3], np.int32)], (1, 2)),
        affine=grids,
        results=[Affine(0.3, 4, 0, TensorType.INT8)],
        stride_h=1,
        stride_w=1,
        padding=Padding.SAME,
    )
    return every.model


def broken(model: Model, folder: Path) -> set[str]:
    """Find the rules that a program breaks."""
    folder.mkdir()
    for name, text in program_of(model, arena="caller").files.items():
        (folder / name).write_text(text)
    command = ["cppcheck", "--std=c99", "--platform=unix32", "--addon=misra", "-q", "net.c"]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr
    return set(re.findall(r"misra-c2012-([\d.]+)", said))


@pytest.mark.skipif(not shutil.which("cppcheck"), reason="there is no cppcheck")
def test_the_page_lists_the_rules_that_programs_break(tmp_path: Path) -> None:
    models = {"bytes": of_bytes(), "floats": recurrent(), "levels": lq_dense((16, 8), 2)}
    rules = set[str]().union(*(broken(m, tmp_path / name) for name, m in models.items()))
    assert rules, "cppcheck did not run its addon"
    assert rules == set(re.findall(r"^\| (\d+\.\d+) \|", PAGE.read_text(), re.MULTILINE))


BODY = re.compile(r"\b(?:(if|for|while) (\()|(else)\b)")


def without_braces(text: str) -> list[str]:
    """List the beginnings of bodies that have no braces; conditions behind a body are of `do`."""
    code, odd = re.sub(r"/\*.*?\*/", "", text, flags=re.S), []
    for word in BODY.finditer(code):
        end, depth = word.end(), int(word[2] is not None)
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        is_do = word[1] == "while" and re.search(r"\}[\s\\]*$", code[: word.start()])
        if not is_do and not re.match(r"\s*(\{|if\b)", code[end:]):
            odd.append(code[word.start() : end + 20])
    return odd


def test_all_bodies_have_braces() -> None:
    odd = without_braces("if (a) b;\nelse if (c) { d; } else e;")
    assert [text.split()[0] for text in odd] == ["if", "else"]
    for words in (1, 4):
        for piece in set(pieces(words).values()):
            lines = [line for line in piece.text.splitlines() if line[:3] not in ("#if", "#el")]
            assert without_braces("\n".join(lines)) == [], piece.source
