"""FULLY_CONNECTED against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, ShapeError, UnsupportedError
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from tests.support import one_op, run_litert, run_native, run_reference

ACTIVATIONS = [ActivationFunctionType(n) for n in range(4)]


def operands(shape: tuple[int, ...], n: int, o: int) -> list[Array]:
    generator = np.random.default_rng(4)
    shapes = (shape, (o, n), (o,))
    return [generator.normal(0, 2, s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("keep_num_dims", [False, True])
@pytest.mark.parametrize("shape", [(1, 7), (5, 7), (2, 3, 7)])
def test_fully_connected_gives_what_litert_gives(
    shape: tuple[int, ...], keep_num_dims: bool, activation: ActivationFunctionType
) -> None:
    options = {"keep_num_dims": keep_num_dims, "activation": activation}
    arrays = operands(shape, 7, 4)
    ours, theirs = (
        run(FullyConnected, arrays, (1, 2), **options)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * np.abs(theirs).max(), strict=True)


@pytest.mark.parametrize(
    ("shape", "n", "o"),
    [((1, 33), 33, 130), ((1, 5), 5, 3), ((13, 20), 20, 17), ((2, 3, 8), 8, 70), ((3, 8), 12, 1)],
)
def test_native_fully_connected_equals_the_reference(
    shape: tuple[int, ...], n: int, o: int
) -> None:
    arrays = operands(shape, n, o)
    arrays[0].reshape(-1)[:2] = np.nan, np.inf
    relu = ActivationFunctionType.RELU
    options: dict[str, Any] = {"activation": relu, "keep_num_dims": shape[-1] == n}
    for given in (arrays, arrays[:2]):
        (want,) = run_reference(FullyConnected, given, (1, 2), **options)
        got = run_native(one_op(FullyConnected, given, (1, 2), **options), arrays[0])
        finite = np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 * finite, strict=True)


@pytest.mark.parametrize("shape", [(0, 7), (0, 3, 7)])
def test_fully_connected_of_no_rows_is_empty(shape: tuple[int, ...]) -> None:
    model = one_op(FullyConnected, operands(shape, 7, 4), (1, 2))
    assert Interpreter(model).run(np.zeros(shape, np.float32))["y0"].shape == (0, 4)


def test_fully_connected_joins_axes_into_rows() -> None:
    arrays = operands((3, 2, 4), 8, 5)
    (y,) = run_reference(FullyConnected, arrays, (1, 2))
    np.testing.assert_allclose(y, arrays[0].reshape(3, 8) @ arrays[1].T + arrays[2], rtol=1e-5)


def test_fully_connected_without_bias() -> None:
    x, weights, _ = operands((2, 6), 6, 3)
    (y,) = run_reference(FullyConnected, [x, weights], (1,))
    np.testing.assert_allclose(y, x @ weights.T, rtol=1e-5, atol=1e-5)


def test_fully_connected_keeps_unknown_rows() -> None:
    graph = Graph()
    x, weights = (
        graph.add_input("x", (None, 6)),
        graph.add_constant("w", np.ones((3, 6), np.float32)),
    )
    assert FullyConnected(x, weights).infer_shape() == (None, 3)


def test_fully_connected_refuses_rows_of_another_length() -> None:
    with pytest.raises(ShapeError, match=r"input \[2,5\] does not divide into rows of 6"):
        run_reference(FullyConnected, operands((2, 5), 6, 3), (1, 2))


@pytest.mark.parametrize("keep_num_dims", [False, True])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_fully_connected_refuses_weights_without_columns(
    keep_num_dims: bool, constant: tuple[int, ...]
) -> None:
    arrays = [np.zeros((2, 1, 0), np.float32), np.zeros((5, 0), np.float32)]
    with pytest.raises(ShapeError, match="weights have 0 columns, at least 1 is needed"):
        one_op(FullyConnected, arrays, constant, keep_num_dims=keep_num_dims)


def test_fully_connected_refuses_a_bias_of_another_length() -> None:
    x, weights, bias = operands((2, 6), 6, 3)
    with pytest.raises(ShapeError, match="outputs: bias has 2, weights has 3"):
        run_reference(FullyConnected, [x, weights, bias[:2]], (1, 2))


def test_fully_connected_refuses_shuffled_weights() -> None:
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED16x1FLOAT32
    with pytest.raises(UnsupportedError, match="SHUFFLED16x1FLOAT32 is not supported"):
        run_reference(FullyConnected, operands((2, 6), 6, 3), (1, 2), weights_format=shuffled)


def test_fully_connected_refuses_integers_that_are_not_quantized() -> None:
    x, weights, bias = operands((2, 6), 6, 3)
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32 x INT32 x FLOAT32"):
        run_reference(FullyConnected, [x, weights.astype(np.int32), bias], (1, 2))


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (1, 1, 3)])
def test_fully_connected_takes_a_bias_with_any_axes(shape: tuple[int, ...]) -> None:
    """As many rows as outputs: nothing else would tell that it was added to the wrong axis."""
    rng = np.random.default_rng(7)
    x, weights = (rng.normal(size=(3, n)).astype(np.float32) for n in (5, 5))
    arrays = [x, weights, np.array([1, 20, 300], np.float32).reshape(shape)]
    (theirs,) = run_litert(FullyConnected, arrays, (1, 2))
    ours = run_reference(FullyConnected, arrays, (1, 2))[0]
    compiled = run_native(one_op(FullyConnected, arrays, (1, 2)), x)
    for y in (ours, compiled):
        np.testing.assert_allclose(y, theirs, rtol=1e-5)
