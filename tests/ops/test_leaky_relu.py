"""LEAKY_RELU: numbers against LiteRT."""

import numpy as np
import pytest

from luciole.ir import UnsupportedError
from luciole.ir.ops.leaky_relu import LeakyRelu
from tests.native_support import check_compiled
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

EXTREMES = np.array([0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 3.0, -0.5])
def test_numbers_are_those_of_litert(alpha: float) -> None:
    random = np.random.default_rng(5).normal(0, 3, (3, 1, 77)).astype(np.float32)
    for x in (random, EXTREMES, np.array(-2, np.float32)):
        ours, theirs = (run(LeakyRelu, [x], alpha=alpha)[0] for run in (run_reference, run_litert))
        np.testing.assert_array_equal(ours, theirs)
        zero = ours == 0
        np.testing.assert_array_equal(np.signbit(ours)[zero], np.signbit(theirs)[zero])


def test_leaky_relu_refuses_integers() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT32"):
        run_reference(LeakyRelu, [np.ones(2, np.int32)], alpha=0.5)


@pytest.mark.parametrize("shape", [(1,), (17,), (3, 33)])
def test_the_compiled_formula_gives_what_the_reference_gives(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    check_compiled(LeakyRelu, [x], alpha=0.3)
