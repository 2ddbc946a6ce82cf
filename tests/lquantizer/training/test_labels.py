"""Training to labels: of logits, probabilities and steps, and what is refused before anything."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import InputError
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Model
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.training import UniformSettings
from luciole.lquantizer.training.labels import Labels
from tests.networks import network, random, steps, two_outputs

X = random(4, 120, 20)
SETTINGS: dict[str, Any] = {"train_weights": True, "train_biases": True, "label_weight": 1.0}


def one_layer() -> Model:
    return network((20, 4))


def ended(end: str) -> Model:
    """Let a network end in logits, in a SOFTMAX, in a RESHAPE behind that, or in an ADD of 0, so
    that its numbers alone say that they are probabilities.
    """
    model = one_layer()
    graph = model.graph
    model.signatures.clear()
    if end != "logits":
        graph.outputs = [graph.append(Softmax(graph.outputs[0], beta=1.0), "p").output]
    if end == "sum":
        zero = graph.add_constant("zero", np.zeros(1, np.float32))
        graph.outputs = [graph.append(Add(graph.outputs[0], zero), "row").output]
    if end == "reshape":
        shape = graph.add_constant("shape", np.array([-1, 4], np.int32))
        graph.outputs = [graph.append(Reshape(graph.outputs[0], shape), "row").output]
    return model


def first_loss(model: Model, x: Array, labels: Array, **more: Any) -> tuple[float, float]:
    """Find the loss of a first step with all records but those held back, and by NumPy the mean
    cross-entropy of the float network on the same records.
    """
    result = luciole.quantize(model, x, scheme="int8", ranges="min_max", proof=False)
    settings = UniformSettings(batch=len(x), held_back=0.2, **SETTINGS)
    choices: dict[str, Any] = {"labels": labels, "settings": settings, "proof": False, **more}
    tuned = luciole.finetune(result, model, x, epochs=1, **choices)
    name = more.get("labelled_output", model.graph.outputs[0].name)
    numbers = outputs_of(luciole.Interpreter(model), {"x": x})[name].astype(np.float64)
    used = np.setdiff1d(np.arange(len(x)), tuned.held_back)
    loss = tuned.history[1].loss
    assert loss is not None
    accuracy = np.mean(numbers.argmax(-1)[tuned.held_back] == labels[tuned.held_back])
    assert tuned.history[0].accuracy == pytest.approx(accuracy, abs=0.05)
    return loss, cross_entropy(numbers[used], labels[used])


def cross_entropy(numbers: Array, labels: Array) -> float:
    """Compute it of probabilities, or of logits."""
    rows = numbers.reshape(-1, numbers.shape[-1])
    is_probability = np.abs(rows.sum(-1) - 1).max() < 0.02 and rows.min() >= 0
    powers = rows if is_probability else np.exp(rows)
    shares = powers / powers.sum(-1, keepdims=True)
    return float(-np.log(shares[np.arange(len(rows)), labels.reshape(-1)]).mean())


def answers(model: Model, x: Array = X) -> Array:
    numbers = outputs_of(luciole.Interpreter(model), {"x": x})[model.graph.outputs[0].name]
    return np.asarray(numbers.argmax(-1))


@pytest.mark.parametrize("end", ["softmax", "logits", "reshape"])
def test_the_loss_is_the_cross_entropy_however_a_network_ends(end: str) -> None:
    pytest.importorskip("tensorflow")
    labels = answers(one_layer())
    labels[::3] = (labels[::3] + 1) % 4
    loss, wanted = first_loss(ended(end), X, labels)
    assert loss == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize("softmax", [True, False])
def test_steps_have_a_label_each(softmax: bool) -> None:
    pytest.importorskip("tensorflow")
    model, x = steps(softmax=softmax), random(5, 100, 6, 20)
    labels = answers(model, x)
    labels[:, 4] = (labels[:, 4] + 1) % 4
    loss, wanted = first_loss(model, x, labels)
    assert loss == pytest.approx(wanted, rel=0.03)


def test_labels_may_be_of_one_of_several_outputs() -> None:
    pytest.importorskip("tensorflow")
    model = two_outputs()
    labels = outputs_of(luciole.Interpreter(model), {"x": X})["fc1"].argmax(-1)
    labels[::3] = (labels[::3] + 1) % 16
    loss, wanted = first_loss(model, X, labels, labelled_output="fc1")
    assert loss == pytest.approx(wanted, rel=0.03)


def test_levels_learn_logits_as_they_learn_what_a_softmax_makes_of_them() -> None:
    pytest.importorskip("tensorflow")
    labels, losses = answers(one_layer()), []
    for end in ("softmax", "logits", "sum"):
        model = ended(end)
        result = luciole.quantize(model, X, encode_bits=2, proof=False)
        tuned = luciole.finetune(result, model, X, epochs=2, labels=labels, proof=False)
        losses.append([epoch.loss or np.nan for epoch in tuned.history[1:]])
    np.testing.assert_allclose(losses[1:], [losses[0]] * 2, rtol=1e-3)
    assert losses[0][-1] < losses[0][0]


def refused(model: Model, labels: Array, x: Array = X, output: str | None = None) -> str:
    with pytest.raises((QuantizeError, InputError)) as error:
        Labels.of(model, {"x": x}, labels, output)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_labels_refuses_what_are_no_classes_of_the_output() -> None:
    zeros = np.zeros(120, np.int64)
    wrong = zeros.copy()
    wrong[7] = 4
    text = "record 7 has label 4, output 'b' has 4 classes: 0 to 3 (without labels, training fol"
    assert refused(network(), wrong).startswith(text)
    wrong[3] = -1
    assert refused(network(), wrong).startswith("record 3 has label -1")
    assert refused(network(), zeros.astype(np.float32)).startswith("the labels are float32, class")
    assert refused(network(), zeros[:5]).startswith("the labels have shape [5], the answers [120]")
    assert refused(network((20, 1)), zeros) == "labels need classes: output 'b' scores none"


def test_labels_refuses_steps_without_a_label_each() -> None:
    x, flat = random(5, 9, 6, 20), np.zeros(9, np.int64)
    text = "labels need classes: output 'fc2' scores none"
    assert refused(steps(softmax=False), flat, x) == text
    assert re.match(r".* shape \[9\], the answers \[9, 6\]", refused(steps(), flat, x))
    assert refused(steps(), np.zeros(54, np.int64), x).startswith("the labels have shape [54]")


def test_labels_refuses_several_outputs_and_names_that_are_none() -> None:
    model, zeros = two_outputs(), np.zeros(120, np.int64)
    text = "labels are of one output, the model has 2: labelled_output says which of fc1, fc2"
    assert refused(model, zeros) == text
    text = "there is no output 'y' that labels could be of, only fc1, fc2"
    assert refused(model, zeros, output="y") == text
    assert Labels.of(model, {"x": X}, zeros, "fc1").output == 1
