"""Weights whose codes follow from them: what a row's have in common moves more slowly."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.optimizer import Adam, schedule
from luciole.lquantizer.training.tensorflow import tensorflow


def moved(gradient: Array, chooses_codes: bool) -> Array:
    """How far a step at a rate of 1 moves numbers that were 0."""
    tf = tensorflow()
    variable = tf.Variable(np.zeros_like(gradient))
    adam = Adam(tf, [Trained("latents", variable, 1.0, chooses_codes=chooses_codes)])
    adam.apply([tf.constant(gradient)], tf.constant(schedule(0, 10)))
    return np.asarray(variable)


def test_a_common_move_is_slowed_by_the_root_of_how_many_there_are() -> None:
    """Adam's first step is the sign of the gradient, here the same for all numbers of a row."""
    gradient = np.array([[3.0] * 16, [-1.0] * 16], np.float32)
    wanted = np.array([[-1.0], [1.0]])
    np.testing.assert_allclose(moved(gradient, False), np.tile(wanted, 16), rtol=1e-5)
    np.testing.assert_allclose(moved(gradient, True), np.tile(wanted / 4, 16), rtol=1e-5)


def test_moves_that_cancel_are_as_fast_as_others() -> None:
    gradient = np.tile(np.array([[2.0, -2.0]], np.float32), (3, 8))
    assert moved(gradient, True) == pytest.approx(moved(gradient, False))


def test_a_row_of_one_number_moves_as_others_do() -> None:
    assert moved(np.array([[5.0]], np.float32), True) == pytest.approx(-1.0)
