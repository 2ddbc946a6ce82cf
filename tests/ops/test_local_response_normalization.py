"""LOCAL_RESPONSE_NORMALIZATION against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Graph, LucioleError, ShapeError
from luciole.ir.ops.local_response_normalization import LocalResponseNormalization
from tests.support import litert, one_op, run_reference

X = np.random.default_rng(5).normal(size=(2, 3, 4, 11)).astype(np.float32) * 3


def normalized(x: Any, radius: int, bias: float, alpha: float, beta: float) -> Any:
    """Channel by channel."""
    y = np.zeros(x.shape)
    for c in range(x.shape[-1]):
        near = x[..., max(c - radius, 0) : c + radius + 1].astype(np.float64)
        y[..., c] = x[..., c] * (bias + alpha * (near**2).sum(axis=-1)) ** -beta
    return y


@pytest.mark.parametrize("radius", [0, 1, 5, 10, 11, 2**31 - 1])
@pytest.mark.parametrize(("bias", "alpha", "beta"), [(1.0, 1.0, 0.5), (9.0, 4.0, 0.75)])
def test_neighbours_damp_a_channel(radius: int, bias: float, alpha: float, beta: float) -> None:
    given: dict[str, Any] = {"radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
    (ours,) = run_reference(LocalResponseNormalization, [X], **given)
    np.testing.assert_allclose(ours, normalized(X, **given), rtol=1e-6)
    if radius < 12:
        model = one_op(LocalResponseNormalization, [X], **given)
        # not its reference kernel, which leaves out the last of the neighbours
        (theirs,) = litert(to_bytes(model, "tflite"), [X], "AUTO")
        np.testing.assert_allclose(ours, theirs, rtol=3e-6)


def test_channels_that_are_no_neighbours_do_not_count() -> None:
    x = np.array([1, np.nan, 2, 3, np.inf], np.float32).reshape(1, 1, 1, 5)
    given: dict[str, Any] = {"radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 1.0}
    (y,) = run_reference(LocalResponseNormalization, [x], **given)
    np.testing.assert_array_equal(np.isnan(y.ravel()), [True, True, True, False, True])
    assert y[0, 0, 0, 3] == 0


def test_local_response_normalization_keeps_unknown_dimensions() -> None:
    op = LocalResponseNormalization(Graph().add_input("x", (None, 8, None, 3)))
    assert op.infer_shape() == (None, 8, None, 3)


def test_local_response_normalization_refuses_other_ranks() -> None:
    with pytest.raises(ShapeError, match=r"input has shape \[4,3\], rank 4 is needed"):
        run_reference(LocalResponseNormalization, [np.ones((4, 3), np.float32)])


def test_local_response_normalization_refuses_a_radius_below_0() -> None:
    with pytest.raises(LucioleError, match="radius is -1, it must be at least 0"):
        run_reference(LocalResponseNormalization, [X], radius=-1)
