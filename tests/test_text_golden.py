"""The dumps of real models, line by line: what scripts that parse them rely on.

``python -m tests.test_text_golden`` writes the texts again; a person reads the difference.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from luciole.importers import load_with_findings
from luciole.ir.text.listing import dump
from luciole.schema.dialect import TFLITE
from tests.support import data_path

GOLDEN = Path(__file__).parent / "golden" / "dump"
MODELS = (
    *("ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8", "mnist_lstm_fp32"),
    *("resnet8_fp32", "resnet8_int8", "vww_96_fp32", "vww_96_int8"),
)


def text_of(name: str) -> str:
    path = data_path(f"models/{name}.tflite")
    return dump(load_with_findings(path)[0], path.name, TFLITE)


@pytest.mark.parametrize("name", MODELS)
def test_the_dump_is_the_one_that_was_read(name: str) -> None:
    assert text_of(name) == (GOLDEN / f"{name}.txt").read_text()


def test_every_text_is_of_a_model() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(MODELS)


def main() -> int:
    """Write the texts."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        (GOLDEN / f"{name}.txt").write_text(text_of(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
