"""The bundled digits network keeps its accuracy at few bits."""

from __future__ import annotations

from importlib import resources

import pytest

import luciole
from luciole.interpreter.evaluation import answers_of, share_right
from luciole.tools.data import load_data
from luciole.tools.demo import DIGITS_PREPROCESS


@pytest.mark.parametrize(("bits", "accuracy"), [(3, 0.968), (2, 0.958), (1, 0.90)])
def test_digits_keep_their_accuracy(bits: int, accuracy: float) -> None:
    """Levels are learned from 1000 training images without their labels; float is at 0.983."""
    with resources.as_file(resources.files("luciole") / "demo_data") as folder:
        model = luciole.load(folder / "digits.circle")
        learn, test = (
            load_data(f"{folder}/digits.npz:{name}", model.graph, preprocess=DIGITS_PREPROCESS)
            for name in ("x_train", "x_test")
        )
    records = {name: array[:1000] for name, array in learn.records.items()}
    result = luciole.quantize(model, records, encode_bits=bits, proof=False)
    assert test.labels is not None
    assert share_right(answers_of(result.model, test.records), test.labels) >= accuracy
