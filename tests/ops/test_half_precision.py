"""Element-wise operators in half precision against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Op
from luciole.ir.ops import activations, comparisons, elementwise_binary, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

FINITE = (0, -0.0, 1, -1, 0.1, -0.3, 2.5, -2.5, 7, 100, -100, 6e-8, -6e-8, 65504, -65504, 0.5)
X = np.array([*FINITE, np.inf, -np.inf, np.nan], np.float16)
UNARY = (
    elementwise_unary.Neg,
    elementwise_unary.Floor,
    elementwise_unary.Sin,
    elementwise_unary.Cos,
    activations.Tanh,
    activations.Logistic,
)
BINARY = (
    elementwise_binary.Add,
    elementwise_binary.Mul,
    elementwise_binary.Maximum,
    elementwise_binary.Minimum,
    *comparisons.COMPARISONS,
)


@pytest.mark.parametrize("cls", UNARY)
def test_functions_in_half_precision_are_those_of_litert(cls: type[Op]) -> None:
    ours, theirs = run_reference(cls, [X])[0], run_litert(cls, [X])[0]
    tolerance = 1e-3 if cls is activations.Logistic else 0  # one unit of the last place
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, strict=True)


@pytest.mark.parametrize("cls", BINARY)
def test_pairs_in_half_precision_are_those_of_litert(cls: type[Op]) -> None:
    pair = [X.reshape(-1, 1), X]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    if cls in BINARY[:2]:  # LiteRT cuts sums and products off at the largest finite number
        ours = np.clip(ours, np.finfo(np.float16).min, np.finfo(np.float16).max)
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_angles_in_half_precision_are_those_of_litert() -> None:
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(X, X))
    ours, theirs = (run(elementwise_binary.Atan2, [x, y])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, strict=True)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_in_half_precision_is_that_of_litert(approximate: bool) -> None:
    x = np.linspace(-8, 8, 999, dtype=np.float16)
    ours, theirs = (
        run(Gelu, [x], approximate=approximate)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=4e-3, strict=True)
