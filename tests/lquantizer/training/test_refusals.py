"""What fine-tuning refuses, each in one line."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import LucioleError, UnsupportedError
from luciole.ir.ops.elementwise_binary import Sub
from luciole.ir.ops.reduce import Mean
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.training import FinetuneSettings, finetune
from luciole.lquantizer.training.tf_graph import TensorGraph
from tests.lquantizer.training.models import (
    convolutional,
    digits,
    regression,
    tune,
)
from tests.support import data_path


def test_a_missing_tensorflow_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(LucioleError, match=r'needs TensorFlow: pip install "\.\[tensorflow\]"'):
        tune(1)


def test_operators_without_a_form_are_refused_by_name() -> None:
    sequences = luciole.load(data_path("models/mnist_lstm_fp32.tflite"))
    _, student, _, _ = digits()
    wanted = r"UNIDIRECTIONAL_SEQUENCE_LSTM \(1x\).*unroll it first"
    with pytest.raises(UnsupportedError, match=wanted) as error:
        TensorGraph(sequences.graph)
    assert error.value.missing == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]
    with pytest.raises(UnsupportedError, match=r"cannot fine-tune LQ_FULLY_CONNECTED \(2x\)"):
        TensorGraph(student.graph)


def refusal(**changes: Any) -> str:
    """The sentence for the digits with something changed."""
    teacher, student, records, _ = digits()
    given = {"student": student, "teacher": teacher, "records": records, **changes}
    models = given.pop("student"), given.pop("teacher"), given.pop("records")
    with pytest.raises(LucioleError) as error:
        finetune(*models, **{"epochs": 1, **given})
    assert "\n" not in str(error.value)
    return str(error.value)


def test_data_that_does_not_fit_is_refused() -> None:
    _, _, records, labels = digits()
    ((name, x),) = records.items()
    broken = x.copy()
    broken[3] = np.nan
    assert "the inputs are" in refusal(records={"other": x})
    assert "a record of" in refusal(records={name: x[:, :5]})
    assert "are float64, float32 is needed" in refusal(records={name: x.astype(np.float64)})
    assert "hold NaN or infinity" in refusal(records={name: broken})
    assert "shape [5], the answers [1200]" in refusal(labels=labels[:5])
    assert "class numbers" in refusal(labels=labels.astype(np.float32))
    for settings in (FinetuneSettings(shift=1), FinetuneSettings(mirror=True)):
        assert "shift and mirror need images [height, width, ch" in refusal(settings=settings)


def test_models_that_do_not_fit_are_refused() -> None:
    teacher, student, _, _ = digits()
    other, _, _ = convolutional()
    assert "has no layer with learned levels: quantize it first" in refusal(student=teacher)
    assert "input 'image' is FLOAT32 [?,64] in the student" in refusal(teacher=other)
    assert "the teacher is quantized already: LQ_FULLY_CONNECTED" in refusal(teacher=student)
    assert "is no layer with learned levels, there is" in refusal(latents={"x": np.zeros(3)})
    hints = FinetuneSettings(hints=("nothing*",))
    assert "hint 'nothing*': student and teacher share no such tensor" in refusal(settings=hints)
    assert "epochs is 0, it must be at least 1" in refusal(epochs=0)


def test_a_model_that_mixes_its_records_is_refused() -> None:
    teacher, student, records = regression()
    for model in (teacher, student):
        graph = model.graph
        (y,) = graph.outputs
        where = graph.add_constant("first", np.array([0], np.int32))
        mean = graph.append(Mean(y, where, keep_dims=True), "mean").output
        graph.outputs = [graph.append(Sub(y, mean), "centred").output]
    with pytest.raises(QuantizeError, match="records that run together give other results"):
        finetune(student, teacher, records, epochs=1)


def test_a_model_without_a_batch_axis_is_refused() -> None:
    teacher, _, _, _ = digits()
    fixed = teacher.clone()
    fixed.graph.outputs[0].shape = (7, 10)
    assert "whose first axis counts records" in refusal(teacher=fixed)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("batch", 0, "batch is 0, it must be at least 1"),
        ("learning_rate", 0.0, "learning_rate is 0.0, it must be above 0"),
        ("temperature", -1.0, "temperature is -1.0"),
        ("held_back", 1.0, "0 or more and below 1"),
        ("shift", -1, "shift is -1"),
        ("label_weight", 1.5, "it must be 0 to 1"),
        ("margin", 0.5, "below 0.5"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        FinetuneSettings(**{name: value})
