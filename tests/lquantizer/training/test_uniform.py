"""Training of networks of uniform integers: gradients by hand, ties, the file against the network
in training, and what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine, affine_of
from luciole.lquantizer import QuantizeError, Result
from luciole.lquantizer.training import FinetuneSettings, UniformSettings
from luciole.lquantizer.training.fake_quantization import Codes, rounded_rows, rounded_tensor
from luciole.lquantizer.training.tensorflow import tensorflow
from luciole.lquantizer.training.tf_graph import TensorGraph
from luciole.lquantizer.training.uniform_parameters import tied_tensors
from luciole.lquantizer.training.uniform_trainer import UniformTrainer
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lquantizer.networks import Builder, images
from tests.lquantizer.runs import records
from tests.lquantizer.training.models import step_by_step
from tests.networks import random

ROUGH: dict[str, Any] = {
    "scheme": "w4a8",
    "ranges": "min_max",
    "rounding": "nearest",
    "rescale": "none",
}


def dense() -> Model:
    """Two dense layers and an answer."""
    b = Builder()
    x = b.graph.add_input("x", (1, 12))
    y = b.add(FullyConnected(x, b.weights(16, 12), b.weights(16), activation=Act.RELU))
    logits = b.add(FullyConnected(y, b.weights(5, 16), b.weights(5)))
    b.graph.outputs = [b.add(Softmax(logits, beta=1.0))]
    return b.model


Small = tuple[Model, Result, Array]


@cache
def small(make: Callable[[], Model] = dense) -> Small:
    """A small network, what min-max ranges and the nearest integers make of it, and records."""
    model = make()
    data = records(model, 240)
    return model, luciole.quantize(model, data, **ROUGH), data["x"]


def trainer(given: Small | None = None, **settings: Any) -> UniformTrainer:
    model, result, _ = given or small()
    assert result.rounded is not None
    chosen = UniformSettings(batch=40, **settings)
    return UniformTrainer(result.rounded, model, chosen, result.latents)


def take_steps(of: UniformTrainer, x: Array, count: int) -> None:
    wanted = of.teach(x)
    for step in range(count):
        of.step(of.prepare(step, count), [x], wanted, np.zeros(len(x), np.int64))
    of.prepare(count, count)


def constants(model: Model) -> dict[str, tuple[bytes, bytes]]:
    """The contents of every constant, and every tensor's scales."""
    found = {}
    for value in model.graph.values:
        affine = affine_of(value)
        held = b"" if value.data is None else value.data.tobytes()
        found[value.name] = (held, b"" if affine is None else affine.scale.tobytes())
    return found


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.5), (-1.5, 2.0), (-3.0, 0.0), (-1.28, 1.27)])
@pytest.mark.parametrize("steps", [True, False])
def test_gradients_of_a_tensor_are_those_of_the_formulas(
    low: float, high: float, steps: bool
) -> None:
    tf = tensorflow()
    scale = (high - low) / 255
    affine = Affine.single(scale, round(-128 - low / scale), TensorType.INT8)
    least, most = (float(side[0]) for side in affine.range)
    x, slope = random(1, 400) * 2, random(2, 400)
    given = [tf.Variable(v) for v in (x, np.float32(least), np.float32(most))]
    with tf.GradientTape() as tape:
        y = rounded_tensor(tf, given[0], given[1], given[2], Codes(8), steps)
        total = tf.reduce_sum(y * slope)
    to_x, to_low, to_high = (
        float(g) if g.shape == () else g.numpy() for g in tape.gradient(total, given)
    )

    wanted = affine.decode(affine.encode(x))
    np.testing.assert_allclose(y, wanted, atol=1e-6)
    inside = (x >= least) & (x <= most)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(to_x, np.where(inside, slope, 0))
    rounding = float((slope * (wanted - x))[inside].sum()) / (most - least) * steps
    np.testing.assert_allclose(to_low, slope[x < least].sum() - rounding, atol=1e-4)
    np.testing.assert_allclose(to_high, slope[x > most].sum() + rounding, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
def test_gradients_of_weights_are_those_of_the_formulas(bits: int) -> None:
    tf = tensorflow()
    most = 2 ** (bits - 1) - 1
    w, slope = random(3, 50, 6), random(4, 50, 6)
    high = np.linspace(0.5, 3.5, 6, dtype=np.float32)
    given = [tf.Variable(w), tf.Variable(high)]
    with tf.GradientTape() as tape:
        y = rounded_rows(tf, given[0], given[1], Codes(bits, narrow=True), True)
        total = tf.reduce_sum(y * slope)
    to_w, to_high = (g.numpy() for g in tape.gradient(total, given))
    scale = high / most
    wanted = np.clip(np.rint(w / scale), -most, most) * scale
    np.testing.assert_allclose(y, wanted, atol=1e-6)
    inside = np.abs(w) <= high
    np.testing.assert_array_equal(to_w, np.where(inside, slope, 0))
    by_step = np.where(inside, (wanted - w) / scale, np.sign(w) * most)  # Esser et al., equation 3
    np.testing.assert_allclose(to_high, (slope * by_step).sum(0) / most, atol=1e-4)


def test_training_starts_from_exactly_the_student() -> None:
    model, result, x = small()
    assert constants(trainer().exported()) == constants(result.model)
    fitted = luciole.quantize(model, x, scheme="w4a8")
    assert constants(trainer((model, fitted, x)).exported()) == constants(fitted.model)


def steps_apart(of: UniformTrainer, x: Array) -> dict[str, int]:
    """How many steps each tensor of the file is from what the network in training makes of the
    file's own tensors in front of it.
    """
    made, rounded = of.exported(), of.rounded().model
    stored = {v.name: v for v in made.graph.values}
    rounds = [op for op in rounded.graph.ops if isinstance(op, Quantize)]
    tensors = []
    for op in rounds:
        integers = [stored[v.name] for v in (op.input, op.output) if v.name in stored]
        tensors.append(next(v for v in integers if v.dtype == TensorType.INT8))
    codes = Interpreter(made).computed({"x": x}, tensors)
    found: dict[str, int] = {}

    def stands_for(op: Quantize, own: Any, have: Array) -> Any:
        affine = Affine.of(op.output, "a tensor")

        def forward(x: Any) -> Any:
            wanted = affine.encode(np.asarray(own(x))).astype(int)
            found[op.output.name] = int(np.abs(have.reshape(wanted.shape) - wanted).max())
            return affine.decode(have).astype(np.float32).reshape(wanted.shape)

        return forward

    twins = [op for op in of.model.graph.ops if isinstance(op, Quantize)]
    layers = dict(of.layers())
    for twin, op, have in zip(twins, rounds, codes, strict=True):
        layers[twin] = stands_for(op, layers[twin], have)
    TensorGraph(of.model.graph, layers, of.variables())([x])
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"gradient": "clip", "loss": "rmse", "train_points": True, "train_biases": True},
        {"train_weights": True, "train_biases": True, "momentum": 0.9, "delay": 0.2},
    ],
)
def test_the_file_is_the_network_in_training_within_one_step(settings: dict[str, Any]) -> None:
    given = small(images)
    of, x = trainer(given, **settings), given[2]
    take_steps(of, x[:20], 10)
    apart = steps_apart(of, x[20:22])
    assert len(apart) > 10
    assert max(apart.values()) <= 1
    assert constants(of.exported()) != constants(given[1].model)


def grids(of: UniformTrainer) -> dict[str, tuple[float, int]]:
    """Scale and zero point of each tensor that is rounded, by the name of what is rounded."""
    rounds = [op for op in of.rounded().model.graph.ops if isinstance(op, Quantize)]
    found = {op.input.name: Affine.of(op.output, "a tensor").parameters for op in rounds}
    return {name: (float(scale[0]), int(point[0])) for name, (scale, point) in found.items()}


def test_tensors_that_share_go_on_sharing_and_fixed_ones_stay() -> None:
    given = small(images)
    of = trainer(given)
    before = grids(of)
    with step_by_step():
        take_steps(of, given[2][:20], 2)
    after = grids(of)
    groups = tied_tensors(of.model.graph)
    assert max(len(group.codes) for group in groups) > 3  # pools, what is joined, what is reshaped
    for group in groups:
        names = [v.producer.op.operands[0] for v in group.codes if v.producer is not None]
        first, *others = [v.name for v in names if v is not None]
        assert all(after[name] == after[first] for name in others)
        assert (after[first] != before[first]) == group.is_free
    fixed = [after[op.input.name] for op in of.model.graph.ops if isinstance(op, Quantize)]
    assert {(1 / 256, -128), (1 / 128, 0)} <= set(fixed)  # of SOFTMAX and LOGISTIC, of TANH


def test_what_cuts_nothing_off_is_moved_by_steps_alone() -> None:
    _, _, x = small()
    for gradient in ("clip", "step"):
        of = trainer(gradient=gradient)
        before = grids(of)
        with step_by_step():
            take_steps(of, x[:40] / 4, 1)
        moved = [before[name] != grid for name, grid in grids(of).items()]
        assert sum(moved) == (3 if gradient == "step" else 0)


def test_symmetric_tensors_stay_symmetric() -> None:
    model, _, x = small()
    made = luciole.quantize(
        model, x, scheme="int8", symmetric=True, rounding="nearest", rescale="none"
    )
    of = trainer((model, made, x))
    before = grids(of)
    with step_by_step():
        take_steps(of, x[:40], 3)
    after = grids(of)
    assert {point for _, point in before.values()} == {0, -128}
    assert {n: point for n, (_, point) in after.items()} == {n: p for n, (_, p) in before.items()}
    assert after["x"] != before["x"]


def test_thresholds_follow_what_batches_hold_until_they_are_frozen() -> None:
    _, _, x = small()
    whole, x = float(np.ptp(x)), x[:40] * np.float32(0.7)
    of = trainer(momentum=0.75, freeze=0.5)
    name = next(op.input.name for op in of.model.graph.ops if isinstance(op, Quantize))
    wanted, part = whole, float(np.ptp(x))
    with step_by_step():
        for step in range(4):
            of.step(of.prepare(step, 4), [x], of.teach(x), np.zeros(len(x), np.int64))
            wanted += 0.25 * (part - wanted) * (step < 2)
    assert grids(of)[name][0] * 255 == pytest.approx(wanted, rel=1e-3)


def test_tensors_are_not_rounded_before_the_delay_is_over() -> None:
    _, _, x = small()
    of = trainer(delay=0.5)
    first = next(op for op in of.model.graph.ops if isinstance(op, Quantize))
    x, compute = x[:8], of.student.function([first.output])
    of.prepare(0, 10)
    np.testing.assert_array_equal(compute(x)[0], x)
    of.prepare(5, 10)
    assert 0 < np.abs(compute(x)[0] - x).max() < grids(of)["x"][0]


def test_thresholds_alone_bring_the_network_closer_to_the_float_one() -> None:
    model, result, x = small()
    settings = UniformSettings(batch=20, held_back=0.3, learning_rate=3e-4)
    found = luciole.finetune(result, model, x, epochs=8, settings=settings)
    assert found.trained == trainer().count == 16 + 5 + 2 + 1 + 2
    first, best = found.history[0].held_back_loss, found.best.held_back_loss
    assert first is not None
    assert best is not None
    assert found.gained
    assert best < first
    assert {op.kind for op in found.model.graph.ops} == {op.kind for op in result.model.graph.ops}
    held = x[found.held_back]
    wanted = outputs(model, held)
    errors = [np.square(outputs(m, held) - wanted).mean() for m in (result.model, found.model)]
    assert errors[1] < errors[0]


def outputs(model: Model, x: Array) -> Array:
    interpreter = Interpreter(model)
    return np.concatenate([next(iter(interpreter.run({"x": one[None]}).values())) for one in x])


def test_a_network_is_never_worse_than_its_start() -> None:
    model, result, x = small()
    wild = UniformSettings(batch=40, held_back=0.3, learning_rate=5.0)
    with step_by_step():
        found = luciole.finetune(result, model, x, epochs=1, settings=wild)
    assert not found.gained
    assert "gained nothing" in found.summary()
    assert constants(found.model) == constants(result.model)


def test_labels_train_weights_too() -> None:
    model, result, x = small()
    labels = outputs(model, x).argmax(1)
    other = (labels + 1) % 5  # which the float network never says
    settings = UniformSettings(
        train_weights=True, train_biases=True, label_weight=1.0, held_back=0.2, batch=20
    )
    found = luciole.finetune(result, model, x, epochs=20, labels=other, settings=settings)
    first, best = found.history[0].accuracy, found.best.accuracy
    assert first is not None
    assert best is not None
    assert first < 0.1 < 0.5 < best
    assert f": accuracy {100 * first:.2f} % -> accuracy" in found.summary()
    answers = outputs(found.model, x).argmax(1)
    assert np.mean(answers == other) > 0.5 > np.mean(answers == labels)


def test_a_rate_that_starts_anew_falls_as_often() -> None:
    _, _, x = small()
    of = trainer(restarts=2)
    shares = [float(of.prepare(step, 9)[0]) for step in range(9)]
    assert shares[:3] == shares[3:6] == shares[6:]
    assert shares[0] == 1 > shares[1] > shares[2]
    with step_by_step():
        take_steps(of, x[:40], 2)
    assert any(np.any(m.numpy()) for m in of.adam.first)
    of.prepare(3, 9)
    assert not any(np.any(m.numpy()) for m in (*of.adam.first, *of.adam.second))


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_other_schemes_are_trained_as_well(scheme: str) -> None:
    model, _, x = small()
    few = x[:40]
    made = luciole.quantize(
        model, few, scheme=scheme, input_type=scheme.partition("x")[0], rescale="none"
    )
    with step_by_step():
        found = luciole.finetune(made, model, x, epochs=1, settings=UniformSettings(batch=80))
    assert [v.dtype for v in found.model.graph.inputs] == [v.dtype for v in made.model.graph.inputs]
    assert len(found.history) == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gradient": "odd"}, "gradient is 'odd': step, clip are possible"),
        ({"loss": "odd"}, "loss is 'odd': kl, rmse are possible"),
        ({"momentum": 1.0}, "momentum is 1.0, it must be 0 or more and below 1"),
        ({"delay": 1.0}, "delay is 1.0"),
        ({"delay": 0.5, "freeze": 0.4}, "freeze is 0.4, it must be above delay"),
        ({"restarts": -1}, "restarts is -1"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        UniformSettings(**settings)


def test_students_of_another_kind_are_refused() -> None:
    model, result, x = small()
    options: dict[str, Any] = {"epochs": 1}
    with pytest.raises(QuantizeError, match="UniformSettings train what quantize made"):
        luciole.finetune(result.model, model, x, settings=UniformSettings(), **options)
    with pytest.raises(QuantizeError, match="FinetuneSettings a model of learned levels"):
        luciole.finetune(result, model, x, settings=FinetuneSettings(), **options)
    with pytest.raises(QuantizeError, match="give the Result of its quantization"):
        luciole.finetune(result.model, model, x, **options)
