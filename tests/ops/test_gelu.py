"""GELU: numbers against LiteRT, and against the formula in double precision."""

import math

import numpy as np
import pytest

from luciole.ir import Array, UnsupportedError
from luciole.ir.ops.gelu import Gelu
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

RANDOM = np.random.default_rng(5).normal(0, 3, (3, 333)).astype(np.float32)
EXTREMES = np.array(
    [0, -0.0, 1e-40, -1e-40, 40, -40, -13, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32
)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(
    "x", [RANDOM, EXTREMES, np.array(0.5, np.float32), np.zeros((0, 2), np.float32)]
)
def test_numbers_are_those_of_litert(x: Array, approximate: bool) -> None:
    ours = run_reference(Gelu, [x], approximate=approximate)[0]
    theirs = run_litert(Gelu, [x], approximate=approximate)[0]
    np.testing.assert_allclose(ours, theirs, rtol=3e-7, atol=1e-6)


def test_small_results_keep_their_digits() -> None:
    x = np.linspace(-13, 3, 1001, dtype=np.float32)
    exact = [v * math.erfc(-v / math.sqrt(2)) / 2 for v in x.tolist()]
    np.testing.assert_allclose(run_reference(Gelu, [x])[0], exact, rtol=1e-6, atol=1e-45)


def test_the_approximation_is_the_published_one() -> None:
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    inner = [math.sqrt(2 / math.pi) * (v + 0.044715 * v**3) for v in x.tolist()]
    exact = [v * (1 + math.tanh(w)) / 2 for v, w in zip(x.tolist(), inner, strict=True)]
    ours = run_reference(Gelu, [x], approximate=True)[0]
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-45)


def test_gelu_refuses_integers() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT"):
        run_reference(Gelu, [np.ones(2, np.int32)])
