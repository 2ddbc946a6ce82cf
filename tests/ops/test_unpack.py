"""UNPACK against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.unpack import Unpack
from tests.support import one_op, run_litert, run_reference

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.bool_])
def test_unpack_gives_what_litert_gives(axis: int, dtype: type[np.generic]) -> None:
    arrays, count = [X.astype(dtype)], X.shape[axis]
    ours, theirs = (
        run(Unpack, arrays, axis=axis, num=count) for run in (run_reference, run_litert)
    )
    assert len(ours) == len(theirs) == count
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other, strict=True)
        assert mine.flags.c_contiguous
        assert not np.shares_memory(mine, arrays[0])


def test_unpack_makes_scalars_of_a_vector() -> None:
    results = run_reference(Unpack, [np.array([7, 8], np.int64)], num=2)
    assert [(y.shape, int(y)) for y in results] == [((), 7), ((), 8)]


def test_unpack_keeps_unknown_dimensions() -> None:
    x = Graph().add_input("x", (None, 2, None))
    assert Unpack(x, axis=1, num=2).infer_shape() == ((None, None),) * 2
    assert Unpack(x, axis=0, num=3).infer_shape() == ((2, None),) * 3


@pytest.mark.parametrize(
    ("axis", "num", "message"),
    [
        (0, 3, "num is 3, axis 0 has 2 elements"),
        (0, -1, "num is -1, axis 0 has 2 elements"),
        (3, 2, "axis is 3, the tensor has 3 axes"),
    ],
)
def test_unpack_refuses_another_number_of_elements(axis: int, num: int, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(Unpack, [X], axis=axis, num=num)
