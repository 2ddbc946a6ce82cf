"""SOFTMAX and LOG_SOFTMAX: numbers against LiteRT, and against double precision."""

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, Op, ShapeError, UnsupportedError
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

BOTH: tuple[tuple[type[Op], dict[str, Any]], ...] = ((Softmax, {"beta": 1.0}), (LogSoftmax, {}))
SHAPES = ((5,), (3, 1), (2, 7), (3, 2, 5), (1, 2, 3, 4), (2, 1, 2, 2, 3), (2, 0), (0, 3))
EXTREMES = np.array(
    [
        [np.inf, 1],
        [-np.inf, 1],
        [-np.inf, -np.inf],
        [np.nan, 1],
        [3e38, -3e38],
        [1e-40, 0],
        [-0.0, 0],
    ],
    np.float32,
)


@pytest.mark.parametrize(("cls", "attributes"), BOTH)
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_are_those_of_litert(
    cls: type[Op], attributes: dict[str, Any], shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(5).normal(0, 10, shape).astype(np.float32)
    ours, theirs = (run(cls, [x], **attributes)[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize(("cls", "attributes"), BOTH)
def test_extremes_are_those_of_litert(cls: type[Op], attributes: dict[str, Any]) -> None:
    ours, theirs = (run(cls, [EXTREMES], **attributes)[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=3e-7)


@pytest.mark.parametrize("beta", [0.0, 0.25, 2.0, -1.0])
def test_beta_is_that_of_litert(beta: float) -> None:
    x = np.random.default_rng(5).normal(0, 5, (4, 9)).astype(np.float32)
    ours, theirs = (run(Softmax, [x], beta=beta)[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=5e-6 if beta < 0 else 1e-6)


@pytest.mark.parametrize("beta", [1.0, -1.0])
def test_softmax_does_not_overflow(beta: float) -> None:
    x = np.array([[1000, 999], [-1000, -999], [3e38, 0]], np.float32)
    wide = x.astype(np.float64) * beta
    powers = np.exp(wide - wide.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(run_reference(Softmax, [x], beta=beta)[0], expected, rtol=3e-7)


@pytest.mark.parametrize(("cls", "attributes"), BOTH)
def test_softmax_refuses_a_scalar(cls: type[Op], attributes: dict[str, Any]) -> None:
    op = cls(Graph().add_input("x", ()), **attributes)
    with pytest.raises(ShapeError, match="logits is a scalar, at least one axis is needed"):
        op.result_shapes()


@pytest.mark.parametrize(("cls", "attributes"), BOTH)
def test_softmax_refuses_integers(cls: type[Op], attributes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT32"):
        run_reference(cls, [np.ones(2, np.int32)], **attributes)
