"""L2_NORMALIZATION against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, LucioleError, Model, ShapeError, UnsupportedError
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.kernels.l2_normalization import inverse_sqrt
from luciole.schema.enums import ActivationFunctionType
from tests.support import Affine, run_litert, run_reference

ZERO_POINTS = {np.int8: 0, np.uint8: 128}


@pytest.mark.parametrize("shape", [(5,), (3, 1), (2, 3, 4), (2, 3, 5, 17), (0, 4)])
def test_vectors_of_length_1_are_those_of_litert(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).normal(size=shape).astype(np.float32) * 50
    ours, theirs = (run(L2Normalization, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_short_vectors_are_divided_by_epsilon() -> None:
    x = np.array([[0, 0], [3e-9, 4e-9], [3, 4], [np.inf, 1], [np.nan, 1]], np.float32)
    ours, theirs = (run(L2Normalization, [x])[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(ours[1], [3e-3, 4e-3], rtol=1e-6)


@pytest.mark.parametrize("dtype", ZERO_POINTS)
@pytest.mark.parametrize("zero_point", [0, 3, 127])
@pytest.mark.parametrize("shape", [(4000, 3), (2, 3, 4, 17), (7, 1), (3, 4000)])
def test_integers_are_those_of_litert(dtype: Any, zero_point: int, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(5).integers(limits.min, limits.max + 1, shape).astype(dtype)
    x[0] = zero_point
    given: dict[str, Any] = {
        "affine": [Affine(0.02, zero_point)],
        "results": [Affine(1 / 128, ZERO_POINTS[dtype])],
    }
    ours, theirs = (run(L2Normalization, [x], **given)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_inverse_roots_are_nearly_right() -> None:
    x = np.unique(np.geomspace(2, 2**40, 5000).astype(np.int64))
    multiplier, shift = inverse_sqrt(x)
    np.testing.assert_allclose(multiplier / 2.0**31 / 2.0**shift, x**-0.5, rtol=2e-6)


def test_l2_normalization_keeps_unknown_dimensions() -> None:
    op = L2Normalization(Graph().add_input("x", (None, 8, None)))
    assert op.infer_shape() == (None, 8, None)


def test_an_activation_behind_it_stays() -> None:
    """LiteRT refuses one in it: "params->activation != kTfLiteActNone"."""
    graph = Model().add_graph(Graph("main"))
    (middle,) = graph.append(L2Normalization(graph.add_input("x", (2, 3))), "middle").results
    graph.outputs = list(graph.append(Relu(middle), "y").results)
    assert not fuse_activation_function(graph)


def test_l2_normalization_refuses_scalars() -> None:
    with pytest.raises(ShapeError, match="input is a scalar, at least one axis is needed"):
        run_reference(L2Normalization, [np.array(3, np.float32)])


@pytest.mark.parametrize(
    ("affine", "result", "message"),
    [
        (None, Affine(1 / 128), "the input has no scale; one, or one per channel, is needed"),
        (Affine(1.0), Affine([0.5, 0.5, 0.5], [0, 0, 0], 1), "the result has 3 scales; one is"),
        (Affine(1.0), None, "the result has no scale; one, or one per channel, is needed"),
        (
            Affine(1.0),
            Affine(0.5, 3),
            "scale 0.5 and zero point 3, 0.0078125 and 0 are needed",
        ),
    ],
)
def test_l2_normalization_refuses_other_scales(
    affine: Affine | None, result: Affine | None, message: str
) -> None:
    x = np.ones((2, 3), np.int8)
    with pytest.raises(LucioleError, match=message):
        run_reference(L2Normalization, [x], affine=[affine], results=[result])


def test_l2_normalization_refuses_activations_of_integers() -> None:
    given: dict[str, Any] = {"affine": [Affine(1.0)], "results": [Affine(1 / 128)]}
    relu = ActivationFunctionType.RELU
    with pytest.raises(UnsupportedError, match="fused activation RELU is not supported"):
        run_reference(L2Normalization, [np.ones((2, 3), np.int8)], activation=relu, **given)
