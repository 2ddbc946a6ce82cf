"""What newcomers do wrong is refused in one line that says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Model
from luciole.ir.errors import ChoiceError, GraphError
from luciole.lquantizer import QuantizeError
from luciole.tools.random_models import dense
from tests.support import refusal_of
from tests.tools.running import call

X = np.zeros((4, 6), np.float32)
NAN = np.where(np.arange(24).reshape(4, 6) == 17, np.float32("nan"), X)


def wrong(argument: object) -> Any:
    """Pass an argument of another type than the one that is declared."""
    return argument


@pytest.fixture
def model() -> Model:
    return dense((6, 5, 3))


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (lambda m: luciole.load("."), ".: this folder is no SavedModel"),
        (lambda m: luciole.save(wrong("net.circle"), "out.circle"), "a Model to save (of a result"),
        (lambda m: luciole.verify(wrong(None)), "a Model or the path of a file is needed"),
        (lambda m: luciole.run(m, "x.npy"), "is str: an array is needed"),
        (lambda m: luciole.run(m, X.astype(int)), 'has int64: .astype("float32") converts an a'),
        (lambda m: luciole.evaluate(m, X.astype("f2")), "takes float32, the data has float16: ."),
        (lambda m: luciole.quantize(m, [[1, 2, 3, 4, 5, 6]]), 'has int64: .astype("float32") c'),
        (lambda m: luciole.evaluate(m, X, ["cat"] * 4), "numbers of classes, 0, 1, 2, ..., found"),
        (lambda m: luciole.evaluate(m, X, [0, 1, 106, 9]), "record 2 has label 106, output"),
        (lambda m: luciole.evaluate(m, X, [0, 1, -1, 2]), "has 3 classes: 0 to 2"),
        (lambda m: luciole.evaluate(m, X, ignore_label=9), "ignore_label goes with labels"),
        (
            lambda m: luciole.evaluate(m, X, [9] * 4, metric="m.py:f", ignore_label=9),
            "a metric judges all outputs and labels: leave ignore_label out",
        ),
        (lambda m: luciole.evaluate(m, X, [True] * 4), "numbers of classes, 0, 1, 2, ..., found b"),
        (lambda m: luciole.evaluate(m, X, [0.5, 1, 2, 0]), "labels are numbers of classes"),
        (lambda m: luciole.diff(m, dense((7, 5, 3)), X), "the other model: a record of"),
        (lambda m: luciole.evaluate(m, NAN, [0] * 4), "element [5] of record 2 is nan: not finite"),
        (lambda m: luciole.diff(m, m, NAN), "input 'x': element [5] of record 2 is nan"),
        (lambda m: luciole.diff(m, m, NAN.astype(float)), "element [5] of record 2 is nan"),
        (
            lambda m: luciole.diff(m, m, X + np.float64(1e300)),
            "is 1e+300, which becomes inf: not finite",
        ),
        (lambda m: luciole.view(m, m, data=NAN), "element [5] of record 2 is nan: not finite"),
        (lambda m: luciole.evaluate(m, X, [[1], [2, 3]]), "labels are no array: "),
        (lambda m: luciole.evaluate(m, X, against=dense((6, 4))), "of the other model 4"),
        (lambda m: luciole.run(m, X, []), "outputs: at least one name is needed"),
        (lambda m: luciole.Interpreter(m, graph=dense((6, 5)).graph), "one of another model"),
        (lambda m: luciole.view(m, embed_limit=-1), "embed_limit is -1: 0 or more bytes"),
        (lambda m: luciole.split(m, []), "at: at least one tensor is needed"),
        (lambda m: luciole.resize(m, wrong({3: [1, 6]})), "shapes: the name of an input is n"),
        (lambda m: luciole.Parts(wrong(m), ["x"], []), "models: a list of models is needed"),
        (lambda m: luciole.Parts([wrong(3)], ["x"], []), "models: a list of models is needed"),
        (lambda m: luciole.Parts([m], "x", []), "inputs: a list of names is needed, found str"),
        (lambda m: luciole.Parts([], [], []), "models: at least one part is needed"),
        (lambda m: luciole.quantize(m, X, scheme="levels:w9a9"), "input bits are 9: 1 to 8"),
        (lambda m: luciole.quantize(m, X, scheme="int7"), "possible, did you mean int8?"),
    ],
)
def test_python_refuses_what_does_not_fit(
    model: Model, use: Callable[[Model], object], sentence: str
) -> None:
    assert sentence in refusal_of(use, model)


def test_tensors_refuse_contents_that_are_no_array(model: Model) -> None:
    constant = next(value for value in model.graph.values if value.is_constant)
    with pytest.raises(GraphError, match="takes a NumPy array as contents, found list"):
        constant.set_data(wrong([1.0, 2.0]))
    with pytest.raises(GraphError, match="takes a NumPy array as contents, found str"):
        model.graph.add_constant("k", wrong("abc"))


def test_an_option_that_is_wrong_is_a_wrong_call() -> None:
    with pytest.raises(QuantizeError) as caught:
        luciole.quantize(dense((6, 5, 3)), X, scheme="int8", granularity=wrong("chanel"))
    assert isinstance(caught.value, ChoiceError)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("quantise net.circle", "invalid choice: 'quantise', did you mean quantize?"),
        ("quantize net.circle -o q.tflite --scheme int7", "did you mean int8?"),
        ("build net.circle", "net.circle: this is no TOML: "),
    ],
)
def test_programs_refuse_with_the_word_that_was_meant(
    words: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.circle").write_text("hello")
    assert sentence in call(capsys, *words.split()).error(2)
