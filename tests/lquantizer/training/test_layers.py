"""Trainable layers: the codes of the file's arithmetic, gradients by hand, export."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.formats.even_levels import is_even
from luciole.lquantizer.training import FinetuneSettings
from luciole.lquantizer.training.levels_trainer import LevelsTrainer
from luciole.lquantizer.training.optimizer import schedule
from luciole.lquantizer.training.parameters import encode, read, trained_ops
from luciole.lquantizer.training.straight_through import quantized
from luciole.lquantizer.training.tensorflow import tensorflow
from luciole.schema.enums import Padding
from tests.lquantizer.training.models import (
    constants,
    convolutional,
    data_of,
    digits,
    recurrent,
    run,
)
from tests.networks import network, random


def bases(rows: int, bits: int) -> tuple[Array, Array]:
    generator = np.random.default_rng([rows, bits])
    basis = generator.normal(0, 1, (rows, bits)).astype(np.float32)
    return basis, generator.normal(0, 0.5, rows).astype(np.float32)


def numbers_with_ties(between: Array, count: int) -> Array:
    """Random numbers, every threshold itself, and its neighbours among the float32 numbers."""
    generator = np.random.default_rng(3)
    rows = len(between)
    up, down = (np.nextafter(between, np.float32(way)) for way in (np.inf, -np.inf))
    drawn = generator.normal(0, 2, (rows, count)).astype(np.float32)
    return np.concatenate([drawn, between, up, down], axis=1)


@pytest.mark.parametrize(("rows", "bits"), [(1, 1), (5, 2), (4, 3), (3, 4), (1, 8)])
def test_the_nearest_level_is_that_of_the_file_arithmetic(rows: int, bits: int) -> None:
    tf = tensorflow()
    basis, offset = bases(rows, bits)
    levels, _ = learned_levels.levels(basis, offset)
    between = learned_levels.thresholds(levels)
    x = numbers_with_ties(between, 200)
    index = np.stack([learned_levels.encode(row, t) for row, t in zip(x, between, strict=True)])
    wanted = np.take_along_axis(levels, index, axis=1).astype(np.float32)
    found = quantized(tf, tf.constant(x), tf.constant(basis), tf.constant(offset))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("rows", "bits"), [(1, 1), (4, 2), (3, 4), (1, 8)])
def test_gradients_are_those_of_the_formulas(rows: int, bits: int) -> None:
    tf = tensorflow()
    basis, offset = bases(rows, bits)
    levels, order = learned_levels.levels(basis, offset)
    x = np.random.default_rng(1).normal(0, 3, (rows, 50)).astype(np.float32)
    slope = np.random.default_rng(2).normal(0, 1, x.shape).astype(np.float32)
    variables = [tf.Variable(v) for v in (x, basis, offset)]
    with tf.GradientTape() as tape:
        y = quantized(tf, *variables)
        total = tf.reduce_sum(y * slope)
    to_x, to_basis, to_offset = (g.numpy() for g in tape.gradient(total, variables))

    step = (levels[:, -1:] - levels[:, :1]) / (levels.shape[1] - 1)
    inside = (x > levels[:, :1] - step / 2) & (x < levels[:, -1:] + step / 2)
    assert 0 < inside.mean() < 1
    np.testing.assert_array_equal(to_x, np.where(inside, slope, 0))
    index = learned_levels.encode_rows(x, learned_levels.thresholds(levels))
    signs = learned_levels.sign_codes(bits)[np.take_along_axis(order, index, 1)]  # [rows, n, bits]
    np.testing.assert_allclose(to_basis, np.einsum("rn,rnk->rk", slope, signs), atol=1e-4)
    np.testing.assert_allclose(to_offset, slope.sum(1), atol=1e-4)


@pytest.mark.parametrize("margin", [0.05, 0.001, 0.4])
def test_targets_are_moved_into_the_cells_of_the_present_codes(margin: float) -> None:
    _, student, filter = convolutional()
    (op,) = trained_ops(student.graph)
    noise = np.random.default_rng(0).normal(0, 1, filter.shape).astype(np.float32)
    near, far = read(op, filter, margin), read(op, filter + noise, margin)
    for start in (read(op), near, far):
        np.testing.assert_array_equal(encode(op, start), data_of(op, "weights_binary"))
    if margin == 0.05:  # most of what chose the codes lies inside of their cells already
        assert np.mean(near.latents == filter.reshape(6, -1)) > 0.8
        assert np.mean(far.latents == (filter + noise).reshape(6, -1)) < 0.5


def test_targets_of_another_shape_are_refused() -> None:
    _, student, filter = convolutional()
    (op,) = trained_ops(student.graph)
    with pytest.raises(QuantizeError, match=r"target weights are \[5,3,2,5\], \[6,3,2,5\] is"):
        read(op, filter[:5])


WINDOWS = [
    (Padding.SAME, 2, 1),
    (Padding.SAME, 1, 2),
    (Padding.VALID, 2, 2),
]


def outputs_of(trainer: LevelsTrainer, x: Array) -> Array:
    """What the student in training computes."""
    (output,) = trainer.model.graph.outputs
    return np.asarray(trainer.student.function([output])(x)[0])


def take_steps(trainer: LevelsTrainer, x: Array, count: int) -> None:
    wanted = [np.asarray(y) for y in trainer.teach(x)]
    for step in range(count):
        labels = np.zeros(len(x), np.int64)
        trainer.step(schedule(step, count), [x], wanted, labels)


@pytest.mark.parametrize(("padding", "stride", "dilation"), WINDOWS)
def test_a_convolution_is_exported_as_it_was_trained(
    padding: Padding, stride: int, dilation: int
) -> None:
    teacher, student, _ = convolutional(padding, stride, dilation)
    x = np.random.default_rng(4).normal(0, 1, (20, 8, 7, 5)).astype(np.float32)
    trainer = LevelsTrainer(student, teacher, FinetuneSettings(learning_rate=5e-2))
    np.testing.assert_allclose(outputs_of(trainer, x), run(student, {"image": x}), atol=1e-5)
    take_steps(trainer, x, 10)
    trained = trainer.exported()
    (before,), (after,) = (trained_ops(m.graph) for m in (student, trained))
    for name in ("weights_scales", "weights_binary", "input_scales", "weights_offsets"):
        assert not np.array_equal(data_of(before, name), data_of(after, name)), name
    assert before.bias is None
    assert after.bias is not None
    assert after.input_offset != before.input_offset == 0.125
    assert isinstance(after, LQConv2D)
    found = run(trained, {"image": x})
    np.testing.assert_allclose(found, outputs_of(trainer, x), atol=1e-4)
    assert np.abs(found - run(student, {"image": x})).max() > 1e-3


def assert_alike(found: Array, wanted: Array) -> None:
    """Equal but for rounding. A hidden value of a network may lie so close to a threshold that
    rounding gives it another level: in a record or two of a hundred.
    """
    differences = np.abs(found - wanted).max(axis=1)
    assert np.mean(differences > 1e-4) <= 0.02
    assert np.median(differences) < 1e-5


@pytest.mark.parametrize("changes", [{}, {"new_offsets": True, "train_inputs": False}])
def test_a_dense_network_is_exported_as_it_was_trained(changes: dict[str, Any]) -> None:
    teacher, student, records, _ = digits()
    x = next(iter(records.values()))[:100]
    trainer = LevelsTrainer(student, teacher, FinetuneSettings(**changes))
    first = {student.graph.inputs[0].name: x}
    assert_alike(outputs_of(trainer, x), run(student, first))
    take_steps(trainer, x, 20)
    trained = trainer.exported()
    found = run(trained, first)
    assert_alike(found, outputs_of(trainer, x))
    assert np.abs(found - run(student, first)).max() > 1e-2
    for before, after in zip(trained_ops(student.graph), trained_ops(trained.graph), strict=True):
        old, new = (data_of(op, "input_scales") for op in (before, after))
        assert np.array_equal(old, new) == (not changes.get("train_inputs", True))
        if changes.get("new_offsets"):
            assert after.weights_offsets is not None


def test_even_levels_stay_even_and_are_exported_as_they_were_trained() -> None:
    teacher, x = network(), random(4, 100, 20)
    student = luciole.quantize(teacher, x, encode_bits="w2a3", uniform=True, proof=False)
    trainer = LevelsTrainer(student.model, teacher, FinetuneSettings(learning_rate=1e-2))
    assert_alike(outputs_of(trainer, x), run(student.model, {"x": x}))
    take_steps(trainer, x, 20)
    trained = trainer.exported()
    assert_alike(run(trained, {"x": x}), outputs_of(trainer, x))
    models = (student.model, trained)
    for before, after in zip(*(trained_ops(m.graph) for m in models), strict=True):
        for which in ("input_scales", "weights_scales"):
            old, new = data_of(before, which), data_of(after, which)
            assert not np.array_equal(old, new)
            assert is_even(new)


def test_operators_that_share_their_constants_are_trained_as_one() -> None:
    """A recurrent layer that was unrolled stays one: weights, levels and bias of all its steps."""
    teacher = recurrent()
    x = np.random.default_rng(4).normal(0, 1, (40, 8)).astype(np.float32)
    student = luciole.quantize(teacher, x, encode_bits=2, proof=False).model
    trainer = LevelsTrainer(student, teacher, FinetuneSettings(learning_rate=1e-2))
    assert_alike(outputs_of(trainer, x), run(student, {"x": x}))
    take_steps(trainer, x, 10)
    trained = trainer.exported()
    assert_alike(run(trained, {"x": x}), outputs_of(trainer, x))
    steps = trained_ops(trained.graph)
    assert len(steps) == len(trained_ops(student.graph)) == 3
    assert all(op.operands[1:] == steps[0].operands[1:] for op in steps)
    assert {op.input_offset for op in steps} == {steps[0].input_offset}
    assert constants(trained) != constants(student)
    assert len(to_bytes(trained)) == len(to_bytes(student))
