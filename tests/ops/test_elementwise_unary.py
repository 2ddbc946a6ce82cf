"""Unary element-wise operators against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, UnsupportedError
from luciole.ir.ops.elementwise_unary import (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    Unary,
    ZerosLike,
)
from tests.support import litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

FLOATS = (Abs, Cos, Exp, Floor, Log, Neg, Rsqrt, Sign, Sin, Sqrt, Square, ZerosLike)
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


@pytest.mark.parametrize("cls", [Ceil, Floor, Round], ids=lambda cls: cls.__name__)
def test_rounded_numbers_are_those_of_litert(cls: type[Unary]) -> None:
    x: Array = np.array(
        [0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4999, 1e-30, -1e-30, 8388607.5, -3e38],
        np.float32,
    )
    x = np.concatenate([x, np.array([3e38, np.inf, -np.inf, np.nan], np.float32)])
    ours = run_reference(cls, [x])[0]
    # CEIL and ROUND are not among LiteRT's reference kernels: an optimized one runs.
    theirs = litert(to_bytes(one_op(cls, [x]), "tflite"), [x], "AUTO")[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("cls", [Sin, Cos], ids=lambda cls: cls.__name__)
def test_waves_far_out_are_those_of_litert(cls: type[Unary]) -> None:
    x = np.random.default_rng(3).normal(0, 1e4, 500).astype(np.float32)
    ours, theirs = (run(cls, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("cls", "dtype"),
    [(Sign, np.int32), (Sign, np.float64), (ZerosLike, np.int32), (ZerosLike, np.int64)],
)
def test_other_types_are_those_of_litert(cls: type[Unary], dtype: type[np.generic]) -> None:
    x = np.array([[-3, 0, 7], [1, -1, 40_000]], dtype)
    ours, theirs = (run(cls, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


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
