"""FAKE_QUANT against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, LucioleError
from luciole.ir.ops.fake_quant import FakeQuant
from tests.support import run_litert, run_reference

X = np.concatenate(
    [
        np.random.default_rng(5).normal(0, 3, 4000),
        [0, -0.0, 1e30, -1e30, np.inf, -np.inf, 0.5, 1.5, -0.5],
    ]
).astype(np.float32)


RANGES = pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.1, 5.7), (0.5, 6.0), (-6.0, -1.0)]
)


@RANGES
@pytest.mark.parametrize("bits", [2, 4, 8, 16])
def test_numbers_are_rounded_like_in_litert(low: float, high: float, bits: int) -> None:
    given: dict[str, Any] = {"min": low, "max": high, "num_bits": bits}
    ours, theirs = (run(FakeQuant, [X], **given)[0] for run in (run_reference, run_litert))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * (high - low) / 2**bits)
    assert len(np.unique(ours)) <= 2**bits


@RANGES
@pytest.mark.parametrize("bits", [2, 3, 8])
def test_a_narrow_range_has_a_level_less(low: float, high: float, bits: int) -> None:
    """LiteRT: "narrow_range FakeQuant is not currently supported at runtime"."""
    (ours,) = run_reference(FakeQuant, [X], min=low, max=high, num_bits=bits, narrow_range=True)
    count = 2**bits - 1
    step = (high - low) / (count - 1)
    below = min(max(round(-low / step), 0), count - 1)
    levels = step * (np.arange(count) - below)
    nearest = levels[np.abs(X[:4000, None] - levels).argmin(axis=1)]
    np.testing.assert_allclose(ours[:4000], nearest, rtol=0, atol=1e-6 * abs(levels).max())


def test_nan_is_the_lower_limit() -> None:
    x = np.array([np.nan], np.float32)
    (y,) = run_reference(FakeQuant, [x], min=-1.0, max=1.0, num_bits=8)
    assert y[0] == pytest.approx(-1, abs=1 / 255)


def test_fake_quant_keeps_unknown_dimensions() -> None:
    op = FakeQuant(Graph().add_input("x", (None, 8)))
    assert op.infer_shape() == (None, 8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min": 0.0, "max": 1.0, "num_bits": 1}, "num_bits is 1, 2 to 16 are possible"),
        ({"min": 0.0, "max": 1.0, "num_bits": 17}, "num_bits is 17, 2 to 16 are possible"),
        ({"min": 1.0, "max": 1.0, "num_bits": 8}, "min is 1.0 and max 1.0: no range of numbers"),
        ({"min": float("nan"), "max": 1.0, "num_bits": 8}, "min is nan and max 1.0: no range"),
        ({"min": 0.0, "max": float("inf"), "num_bits": 8}, "min is 0.0 and max inf: no range"),
    ],
)
def test_fake_quant_refuses_what_is_no_range(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LucioleError, match=message):
        run_reference(FakeQuant, [X], **given)
