"""TOPK_V2 against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.topk_v2 import TopkV2
from tests.support import run_litert, run_reference


def compare(x: Array, k: int, constant: tuple[int, ...] = (1,)) -> None:
    pair = [x, np.array(k, np.int32)]
    ours, theirs = run_reference(TopkV2, pair, constant), run_litert(TopkV2, pair, constant)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("constant", [(1,), ()])
@pytest.mark.parametrize(("shape", "k"), [((7,), 3), ((4, 19), 19), ((2, 3, 33), 5), ((2, 1), 1)])
def test_the_largest_are_those_of_litert(
    dtype: DTypeLike, constant: tuple[int, ...], shape: tuple[int, ...], k: int
) -> None:
    x = np.random.default_rng(k).integers(0, 9, shape).astype(dtype)  # many are equal
    compare(x, k, constant)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8, np.uint8])
def test_extreme_integers_are_those_of_litert(dtype: DTypeLike) -> None:
    limits = np.iinfo(np.dtype(dtype).name)
    compare(np.array([3, limits.min, limits.max, 0, limits.max - 1, limits.min + 1], dtype), 6)


def test_extreme_floats_are_those_of_litert() -> None:
    x = [0, -0.0, 1.5, -1.5, np.nan, np.inf, -np.inf, 3e38, 1e-40, -1e-40]
    compare(np.array(x, np.float32), len(x))


def test_none_and_nothing() -> None:
    values, places = run_reference(TopkV2, [np.ones((2, 3), np.float32), np.array(0, np.int32)])
    assert values.shape == places.shape == (2, 0)


def test_a_computed_k_leaves_an_extent_unknown() -> None:
    graph = Graph()
    op = TopkV2(graph.add_input("x", (None, 3)), graph.add_input("k", (), TensorType.INT32))
    assert op.result_shapes() == ((None, None),) * 2
    assert op.result_dtypes() == (TensorType.FLOAT32, TensorType.INT32)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ([4], "k is 4, the last axis has 3 elements"),
        ([-1], "k is -1"),
        ([1, 2], "k has 2 entries, 1 are needed"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_topk_v2_refuses_more_than_there_is(
    k: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(TopkV2, [np.ones((2, 3), np.float32), np.array(k, np.int32)], constant)


def test_topk_v2_refuses_a_scalar() -> None:
    with pytest.raises(ShapeError, match="input is a scalar, at least one axis is needed"):
        run_reference(TopkV2, [np.array(1, np.float32), np.array(1, np.int32)], (1,))
