"""TRANSPOSE against LiteRT."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.transpose import Transpose
from tests.native_support import run_compiled
from tests.support import one_op, run_litert, run_reference

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("perm", [*permutations(range(3)), (-1, 0, -2)])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_transpose_gives_what_litert_gives(
    perm: tuple[int, ...], constant: tuple[int, ...]
) -> None:
    arrays = [X, np.array(perm, np.int32)]
    ours, theirs = (run(Transpose, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.flags.c_contiguous
    assert not np.shares_memory(ours, X)


@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_transpose_of_other_ranks_gives_what_litert_gives(rank: int) -> None:
    rng = np.random.default_rng(rank)
    x = rng.normal(size=rng.integers(1, 5, rank)).astype(np.float32)
    arrays = [x, rng.permutation(rank).astype(np.int32)]
    ours, theirs = (run(Transpose, arrays, (1,))[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_transpose_takes_every_type(dtype: type[np.generic]) -> None:
    (y,) = run_reference(Transpose, [X.astype(dtype), np.array([2, 0, 1], np.int64)])
    np.testing.assert_array_equal(y, X.astype(dtype).transpose(2, 0, 1), strict=True)


def test_transpose_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 3)), graph.add_input("perm", (2,))
    perm = graph.add_constant("swap", np.array([1, 0], np.int32))
    assert Transpose(x, perm).infer_shape() == (3, None)
    assert Transpose(x, computed).infer_shape() == (None, None)


@pytest.mark.parametrize("lines", [15, 16, 17, 32, 45])
@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8])
def test_few_rows_are_woven(rows: int, lines: int) -> None:
    x = np.random.default_rng(rows).normal(size=(3, rows, lines)).astype(np.float32)
    (woven,) = run_compiled(Transpose, [x, np.array([0, 2, 1], np.int32)], (1,))
    np.testing.assert_array_equal(woven, x.transpose(0, 2, 1), strict=True)


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        ([0, 0, 1], r"perm is \[0, 0, 1\], each of the 3 axes is needed once"),
        ([0, 1, -2], r"perm is \[0, 1, -2\], each of the 3 axes is needed once"),
        ([0, 1, 3], "an axis of perm is 3, the tensor has 3 axes"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_transpose_refuses_what_is_no_permutation(
    perm: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Transpose, [X, np.array(perm, np.int32)], constant)


@pytest.mark.parametrize("constant", [(1,), ()])
def test_transpose_refuses_a_perm_of_another_length(constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="axes: perm has 2, the operand has 3"):
        one_op(Transpose, [X, np.array([1, 0], np.int32)], constant)
