"""16 bit fixed-point functions against real ones; the LSTM's tests compare them bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.kernels.fixed_point.functions_16 import exp, logistic, raised, saturated, tanh, times

EVERY = np.arange(-(2**15), 2**15)
UNIT = 2.0**-15


def test_the_logistic_function_of_every_number() -> None:
    wanted = 1 / (1 + np.exp(-EVERY * 8 * UNIT))
    np.testing.assert_allclose(logistic(EVERY) * UNIT, wanted, atol=4e-4)


@pytest.mark.parametrize("bits", range(7))
def test_the_tangent_of_every_number(bits: int) -> None:
    wanted = np.tanh(EVERY * 2.0**bits * UNIT)
    np.testing.assert_allclose(tanh(EVERY, bits) * UNIT, wanted, atol=6e-4)


@pytest.mark.parametrize("bits", range(1, 8))
def test_the_exponential_of_every_number_below_0(bits: int) -> None:
    below = EVERY[EVERY <= 0]
    wanted = np.exp(below * 2.0**bits * UNIT)
    np.testing.assert_allclose(exp(below, bits) * UNIT, wanted, atol=4e-4)


def test_products_and_powers_saturate() -> None:
    least, most = np.array(-(2**15)), 2**15 - 1
    assert times(least, least) == most
    assert times(np.array(most), -(2**15)) == -most
    assert raised(np.array([3, 20000, -20000]), 1).tolist() == [6, most, -(2**15)]
    assert raised(np.array([3, -3, 2]), -1).tolist() == [2, -2, 1]
    assert saturated(np.array([40000, -40000])).tolist() == [most, -(2**15)]
