"""ROPE against onert (LiteRT has no such operator) and complex numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Graph, ShapeError
from luciole.ir.ops.rope import Rope
from luciole.schema.enums import RoPEMode
from tests.native_support import check_compiled, declines
from tests.onert_support import needs_onert, onert
from tests.support import one_op, run_reference

RNG = np.random.default_rng(5)
X = RNG.normal(size=(2, 5, 3, 8)).astype(np.float32)


@pytest.mark.parametrize("mode", RoPEMode)
@pytest.mark.parametrize("positions", [(1, 1, 1), (1, 5, 1), (2, 5, 3), (3,), ()])
def test_pairs_are_turned(mode: RoPEMode, positions: tuple[int, ...]) -> None:
    """A pair (a, b) as a + ib times e^(i angle)."""
    angle = RNG.normal(size=(*positions, 4))
    if mode == RoPEMode.GPT_J:
        spread, first, second = np.repeat(angle, 2, axis=-1), slice(0, 8, 2), slice(1, 8, 2)
    else:
        spread, first, second = np.concatenate([angle, angle], -1), slice(0, 4), slice(4, 8)
    tables = [np.sin(spread).astype(np.float32), np.cos(spread).astype(np.float32)]
    (ours,) = run_reference(Rope, [X, *tables], mode=mode)
    turned = (X[..., first] + 1j * X[..., second]) * np.exp(1j * angle)
    np.testing.assert_allclose(ours[..., first], turned.real, atol=1e-6)
    np.testing.assert_allclose(ours[..., second], turned.imag, atol=1e-6)


@needs_onert
def test_rope_gives_what_onert_gives(tmp_path: Path) -> None:
    """onert has GPT_NEOX only ("Unsupported RoPE mode"), and reads the tables' first position."""
    tables = [RNG.normal(size=(1, 1, 1, 8)).astype(np.float32) for _ in range(2)]
    path = tmp_path / "rope.circle"
    path.write_bytes(to_bytes(one_op(Rope, [X, *tables], (1, 2)), "circle"))
    theirs, message = onert(path, X)
    assert theirs is not None, message
    np.testing.assert_allclose(run_reference(Rope, [X, *tables])[0], theirs, rtol=1e-6, atol=1e-7)


def test_rope_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, table = graph.add_input("x", (None, 8, None, 4)), graph.add_input("t", (1, None, 1, None))
    assert Rope(x, table, table).infer_shape() == (None, 8, None, 4)


@pytest.mark.parametrize(
    ("shape", "sin", "cos", "message"),
    [
        ((2, 3, 8), (8,), (8,), r"input has shape \[2,3,8\], rank 4 is needed"),
        ((1, 2, 3, 7), (7,), (7,), "the last axis has 7 elements, pairs are needed"),
        ((1, 2, 3, 8), (4,), (8,), "last axis: sin_table has 4, input has 8"),
        (
            (1, 2, 3, 8),
            (8,),
            (2, 1, 1, 8),
            r"cos_table \[2,1,1,8\] does not stretch to \[1,2,3,8\]",
        ),
        ((1, 2, 3, 8), (1, 1, 1, 1, 8), (8,), r"sin_table \[1,1,1,1,8\] does not stretch"),
    ],
)
def test_rope_refuses_tables_that_do_not_fit(
    shape: tuple[int, ...], sin: tuple[int, ...], cos: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Rope, [np.ones(s, np.float32) for s in (shape, sin, cos)])


@pytest.mark.parametrize("mode", RoPEMode)
@pytest.mark.parametrize("depth", [2, 8, 34, 64])
@pytest.mark.parametrize("table", [(1, 1, 1), (1, 5, 1), (2, 5, 3), (2, 1, 1), (1, 1, 3), (3,), ()])
def test_the_compiled_kernel_gives_the_same(
    mode: RoPEMode, depth: int, table: tuple[int, ...]
) -> None:
    x = RNG.normal(size=(2, 5, 3, depth)).astype(np.float32)
    tables = [RNG.normal(size=(*table, depth)).astype(np.float32) for _ in range(2)]
    check_compiled(Rope, [x, *tables], mode=mode)


@pytest.mark.parametrize("mode", RoPEMode)
def test_the_compiled_kernel_takes_nothing_for_granted(mode: RoPEMode) -> None:
    tables = [np.ones(4, np.float32)] * 2
    check_compiled(Rope, [np.zeros((1, 0, 2, 4), np.float32), *tables], mode=mode)
    one, other = np.ones((1, 1, 8), np.float32), np.ones((1, 1, 1, 8), np.float32)
    assert declines(Rope, [X, one, other], mode=mode)
