"""DEPTH_TO_SPACE and SPACE_TO_DEPTH against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, Op, ShapeError
from luciole.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from tests.litert_support import check_same, counted
from tests.native_support import check_compiled
from tests.support import one_op, run_reference

CASES = pytest.mark.parametrize(
    ("cls", "shape", "side"),
    [
        (DepthToSpace, (2, 3, 2, 8), 2),
        (DepthToSpace, (1, 1, 5, 27), 3),
        (DepthToSpace, (1, 2, 3, 4), 1),
        (SpaceToDepth, (2, 4, 6, 3), 2),
        (SpaceToDepth, (1, 3, 9, 1), 3),
        (SpaceToDepth, (1, 2, 3, 4), 1),
    ],
)


@CASES
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.int64])
def test_blocks_are_those_of_litert(
    cls: type[Op], shape: tuple[int, ...], side: int, dtype: DTypeLike
) -> None:
    check_same(cls, [counted(*shape, dtype=dtype)], block_size=side)


@CASES
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.complex128])
def test_the_compiled_move_is_the_reference(
    cls: type[Op], shape: tuple[int, ...], side: int, dtype: DTypeLike
) -> None:
    check_compiled(cls, [counted(*shape, dtype=dtype)], block_size=side)


def test_one_undoes_the_other() -> None:
    x = counted(2, 4, 6, 5)
    (deep,) = run_reference(SpaceToDepth, [x], block_size=2)
    np.testing.assert_array_equal(run_reference(DepthToSpace, [deep], block_size=2)[0], x)


@pytest.mark.parametrize("cls", [DepthToSpace, SpaceToDepth])
def test_an_empty_batch_is_empty(cls: type[Op]) -> None:
    x = np.zeros((0, 2, 2, 4), np.float32)
    assert run_reference(cls, [x], block_size=2)[0].size == 0


def test_unknown_dimensions_stay_unknown() -> None:
    x = Graph().add_input("x", (None, None, 4, 8))
    assert DepthToSpace(x, block_size=2).infer_shape() == (None, None, 8, 2)
    assert SpaceToDepth(x, block_size=2).infer_shape() == (None, None, 2, 32)


@pytest.mark.parametrize(
    ("cls", "shape", "side", "message"),
    [
        (DepthToSpace, (1, 2, 2, 6), 2, "6 channels do not divide by 4"),
        (SpaceToDepth, (1, 3, 2, 6), 2, "3 rows do not divide by 2"),
        (SpaceToDepth, (1, 2, 3, 6), 2, "3 columns do not divide by 2"),
        (SpaceToDepth, (2, 2, 6), 2, r"input has shape \[2,2,6\], rank 4 is needed"),
        (DepthToSpace, (1, 2, 2, 6), 0, "block_size is 0, it must be at least 1"),
        (SpaceToDepth, (1, 2, 2, 6), -2, "block_size is -2, it must be at least 1"),
    ],
)
def test_blocks_refuses_what_does_not_divide(
    cls: type[Op], shape: tuple[int, ...], side: int, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(cls, [counted(*shape)], block_size=side)
