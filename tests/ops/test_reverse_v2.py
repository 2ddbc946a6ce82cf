"""REVERSE_V2 against LiteRT."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.reverse_v2 import ReverseV2
from tests.litert_support import check_same, counted, ints
from tests.native_support import check_compiled, declines_computed
from tests.support import run_reference

X = counted(2, 3, 4)


@pytest.mark.parametrize("axes", [[0], [1], [-1], [0, 1], [2, 1], [-3, -2, -1]])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_order_is_that_of_litert(
    axes: list[int], dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    check_same(ReverseV2, [X.astype(dtype), ints(*axes)], constant)


# LiteRT: "Non-contiguous `axes` not supported"; TensorFlow has no such limit.
def test_axes_need_not_be_neighbours() -> None:
    (y,) = run_reference(ReverseV2, [X, ints(2, 0)])
    np.testing.assert_array_equal(y, X[::-1, :, ::-1], strict=True)


@pytest.mark.parametrize("shape", [(5,), (17, 33), (2, 3, 4, 5), (0, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64, np.complex128])
def test_the_compiled_move_is_the_reference(shape: tuple[int, ...], dtype: DTypeLike) -> None:
    for count in range(len(shape) + 1):
        for axes in combinations(range(len(shape)), count):
            check_compiled(ReverseV2, [counted(*shape, dtype=dtype), ints(*axes)], (1,))


def test_computed_axes_are_left_to_the_reference() -> None:
    assert declines_computed(ReverseV2, [X, ints(1)], (1,), 1)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, axis = graph.add_input("x", (None, 3)), graph.add_constant("axis", ints(1))
    assert ReverseV2(x, axis).infer_shape() == (None, 3)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (ints(3), "axis is 3, the tensor has 3 axes"),
        (ints(-4), "axis is -4, the tensor has 3 axes"),
        (ints(1, -2), r"axis is \[1, -2\]: an axis of 3 is given twice"),
        (ints([0]), r"axis has shape \[1,1\], rank 1 is needed"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_reverse_refuses_axes_that_are_not_there(
    axes: Array, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(ReverseV2, [X, axes], constant)
