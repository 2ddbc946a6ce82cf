"""Unary element-wise operators against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, UnsupportedError
from luciole.ir.ops.elementwise_unary import Abs, Exp, Log, Neg, Rsqrt, Sqrt, Square, Unary
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

FLOATS = (Abs, Exp, Log, Neg, Rsqrt, Sqrt, Square)
EXTREMES = np.array([0, -0.0, 1e-40, 1, 3e38, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("cls", FLOATS, ids=lambda cls: cls.__name__)
def test_numbers_are_those_of_litert(cls: type[Unary]) -> None:
    x = np.random.default_rng(2).uniform(0.1, 9, (3, 1, 5)).astype(np.float32)
    ours, theirs = (run(cls, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=3e-7, strict=True)


@pytest.mark.parametrize("cls", FLOATS, ids=lambda cls: cls.__name__)
def test_extremes_are_those_of_litert(cls: type[Unary]) -> None:
    ours, theirs = (run(cls, [EXTREMES])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("cls", [Exp, Log, Sqrt, Rsqrt], ids=lambda cls: cls.__name__)
def test_negative_numbers_are_those_of_litert(cls: type[Unary]) -> None:
    x = np.array([-1, -1e-30, -50], np.float32)
    ours, theirs = (run(cls, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("cls", [Abs, Neg, Square], ids=lambda cls: cls.__name__)
def test_integers_are_exact(cls: type[Unary], dtype: type[np.generic]) -> None:
    x = np.array([-3, 0, 7, 40_000], dtype)
    wanted = {Abs: np.abs(x), Neg: -x, Square: x * x}[cls]
    np.testing.assert_array_equal(run_reference(cls, [x])[0], wanted, strict=True)


def test_unknown_extents_stay_unknown() -> None:
    assert Abs(Graph().add_input("x", (None, 2))).infer_shape() == (None, 2)


def test_roots_refuse_integers() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT32"):
        run_reference(Sqrt, [np.ones(2, np.int32)])
