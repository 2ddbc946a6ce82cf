"""SPLIT_V against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.split_v import SplitV
from tests.litert_support import check_same, counted, ints
from tests.native_support import check_compiled, declines_computed
from tests.support import run_reference

X = counted(3, 6, 2)
FULL = [([1, 2, 3], 1), ([4, -1], 1), ([3, 3], -2), ([1, 1, 1], 0), ([2], 2)]
SPLITS = [*FULL, ([0, 6], -2), ([6, -1], 1)]
every_split = pytest.mark.parametrize(("sizes", "axis"), SPLITS)


def arrays(x: Array, sizes: list[int], axis: int) -> list[Array]:
    return [x, ints(*sizes), np.array(axis, np.int32)]


@every_split
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_parts_are_those_of_litert(sizes: list[int], axis: int, dtype: DTypeLike) -> None:
    given = arrays(X.astype(dtype), sizes, axis)
    check_same(SplitV, given, (1, 2), num_splits=len(sizes))


# LiteRT's Python interface gives no empty tensors whose shape was not known before.
@pytest.mark.parametrize(("sizes", "axis"), FULL)
@pytest.mark.parametrize("constant", [(1,), (2,), ()])
def test_computed_parts_are_those_of_litert(
    sizes: list[int], axis: int, constant: tuple[int, ...]
) -> None:
    check_same(SplitV, arrays(X, sizes, axis), constant, num_splits=len(sizes))


@every_split
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_the_compiled_moves_are_the_reference(
    sizes: list[int], axis: int, dtype: DTypeLike
) -> None:
    given = arrays(X.astype(dtype), sizes, axis)
    check_compiled(SplitV, given, (1, 2), num_splits=len(sizes))


@pytest.mark.parametrize("computed", [1, 2])
def test_computed_places_are_left_to_the_reference(computed: int) -> None:
    assert declines_computed(SplitV, arrays(X, [2, 4], 1), (1, 2), computed, num_splits=2)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 3)), graph.add_input("computed", (2,))
    zero, one = graph.add_constant("zero", ints(0)), graph.add_constant("one", ints(1))
    sizes = graph.add_constant("sizes", ints(1, -1))
    assert SplitV(x, sizes, one, num_splits=2).infer_shape() == ((None, 1), (None, 2))
    assert SplitV(x, sizes, zero, num_splits=2).infer_shape() == ((1, 3), (None, 3))
    assert SplitV(x, computed, one, num_splits=2).infer_shape() == ((None, None),) * 2
    place = graph.add_input("place", ())
    assert SplitV(x, sizes, place, num_splits=2).infer_shape() == ((None, None),) * 2


@pytest.mark.parametrize(
    ("sizes", "axis", "message"),
    [
        ([1, 2], 1, r"size_splits is \[1, 2\], that does not make up 6 elements"),
        ([7, -1], 1, r"size_splits is \[7, -1\], that does"),
        ([-1, -1], 1, r"size_splits is \[-1, -1\], that"),
        ([8, -2], 1, r"size_splits is \[8, -2\], that"),
        ([6, 0], 3, "split_dim is 3, the tensor has 3 axes"),
        ([6], 1, "parts: size_splits has 1, num_splits has 2|size_splits has 1 entries"),
    ],
)
@pytest.mark.parametrize("constant", [(1, 2), ()])
def test_split_v_refuses_parts_that_do_not_fit(
    sizes: list[int], axis: int, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(SplitV, arrays(X, sizes, axis), constant, num_splits=2)


def test_split_v_refuses_to_make_nothing() -> None:
    graph = Graph()
    x, sizes = graph.add_input("x", (2,)), graph.add_input("sizes", (0,))
    assert list(SplitV(x, sizes, sizes).verify()) == ["num_splits is 0, it must be at least 1"]
    with pytest.raises(ShapeError, match=r"size_splits is \[\], that does not make up 6 elements"):
        run_reference(SplitV, arrays(X, [], 1), (1, 2))
