"""RMS_NORM against onert (LiteRT has no such operator) and NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Graph, ShapeError
from luciole.ir.ops.rms_norm import RmsNorm
from tests.native_support import check_compiled
from tests.onert_support import needs_onert, onert
from tests.support import one_op, run_reference

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("shape", [(9,), (2, 9), (2, 3, 9), (2, 5, 7, 9), (0, 9)])
@pytest.mark.parametrize("count", [9, 1])
def test_vectors_get_a_mean_square(shape: tuple[int, ...], count: int) -> None:
    x, gamma = (RNG.normal(size=s).astype(np.float32) * 4 for s in (shape, (count,)))
    (ours,) = run_reference(RmsNorm, [x, gamma], epsilon=1e-3)
    length = np.linalg.norm(x.astype(np.float64), axis=-1, keepdims=True)
    np.testing.assert_allclose(ours, gamma * x / np.sqrt(length**2 / 9 + 1e-3), rtol=1e-6)


@needs_onert
def test_rms_norm_gives_what_onert_gives(tmp_path: Path) -> None:
    x, gamma = (RNG.normal(size=s).astype(np.float32) for s in ((2, 5, 7, 9), (9,)))
    path = tmp_path / "rms.circle"
    path.write_bytes(to_bytes(one_op(RmsNorm, [x, gamma], (1,), epsilon=1e-3), "circle"))
    theirs, message = onert(path, x)
    assert theirs is not None, message
    (ours,) = run_reference(RmsNorm, [x, gamma], epsilon=1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_rms_norm_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, gamma = graph.add_input("x", (None, 8, None)), graph.add_input("gamma", (None,))
    assert RmsNorm(x, gamma).infer_shape() == (None, 8, None)


@pytest.mark.parametrize(
    ("shape", "gamma", "message"),
    [
        ((2, 3), (4,), "gamma has 4 elements, input has 3 channels"),
        ((2, 3), (1, 3), r"gamma has shape \[1,3\], rank 1 is needed"),
        ((), (1,), "input is a scalar, at least one axis is needed"),
    ],
)
def test_rms_norm_refuses_operands_that_do_not_fit(
    shape: tuple[int, ...], gamma: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(RmsNorm, [np.ones(s, np.float32) for s in (shape, gamma)])


@pytest.mark.parametrize(
    "shape", [(9,), (2, 16), (2, 3, 33), (2, 5, 7, 64), (0, 9), (3, 0), (5, 1)]
)
@pytest.mark.parametrize("is_one", [False, True])
def test_the_compiled_kernel_gives_the_same(shape: tuple[int, ...], is_one: bool) -> None:
    count = 1 if is_one else shape[-1]
    x, gamma = (RNG.normal(size=s).astype(np.float32) * 4 for s in (shape, (count,)))
    check_compiled(RmsNorm, [x, gamma], rtol=3e-7, epsilon=1e-3)
    check_compiled(RmsNorm, [x * np.float32(1e25), gamma], rtol=3e-7, epsilon=1e-3)


def test_inverse_roots_beyond_floats_are_no_infinities() -> None:
    """Without an epsilon rows of the smallest floats are divided by as small roots."""
    x = np.full((3, 21), 1e-40, np.float32)
    check_compiled(RmsNorm, [x, np.ones(21, np.float32)], rtol=1e-6, epsilon=0.0)
