"""SLICE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.slice import Slice
from tests.support import one_op, run_litert, run_reference

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
BOXES = [
    ([0, 0, 0], [3, 4, 5]),
    ([1, 2, 3], [1, 1, 2]),
    ([0, 1, 2], [-1, -1, -1]),
    ([2, 0, 4], [1, -1, 1]),
    ([0, 0, 0], [-1, 2, -1]),
]


@pytest.mark.parametrize(("begin", "size"), BOXES)
@pytest.mark.parametrize("constant", [(1, 2), ()])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slice_gives_what_litert_gives(
    begin: list[int], size: list[int], constant: tuple[int, ...], dtype: type[np.generic]
) -> None:
    arrays = [X, np.array(begin, dtype), np.array(size, dtype)]
    ours, theirs = (run(Slice, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.flags.c_contiguous
    assert not np.shares_memory(ours, X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_slice_takes_every_type(dtype: type[np.generic]) -> None:
    begin, size = np.array([1, 0, 2], np.int32), np.array([2, 4, -1], np.int32)
    (y,) = run_reference(Slice, [X.astype(dtype), begin, size])
    np.testing.assert_array_equal(y, X.astype(dtype)[1:, :, 2:], strict=True)


def test_slice_may_be_empty() -> None:
    begin, size = np.array([3, 0, 0], np.int32), np.array([-1, 0, 5], np.int32)
    assert run_reference(Slice, [X, begin, size], (1, 2))[0].shape == (0, 0, 5)


def test_slice_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 4, 5)), graph.add_input("begin", (3,))
    begin = graph.add_constant("begin", np.array([1, 1, 1], np.int32))
    size = graph.add_constant("size", np.array([-1, -1, 2], np.int32))
    assert Slice(x, begin, size).infer_shape() == (None, 3, 2)
    assert Slice(x, computed, size).infer_shape() == (None, None, 2)
    assert Slice(x, begin, computed).infer_shape() == (None, None, None)


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([0, 0, 4], [1, 1, 2], "axis 2 has 5 elements: begin 4 and size 2 do not fit"),
        ([-1, 0, 0], [1, 1, 1], "axis 0 has 3 elements: begin -1 and size 1 do not fit"),
        ([0, 0, 0], [1, -2, 1], "axis 1 has 4 elements: begin 0 and size -2 do not fit"),
        ([0, 5, 0], [1, -1, 1], "axis 1 has 4 elements: begin 5 and size -1 do not fit"),
        ([0, 0, 2**31 - 1], [1, 1, 2**31 - 1], "axis 2 has 5 elements"),
    ],
)
@pytest.mark.parametrize("constant", [(1, 2), ()])
def test_slice_refuses_boxes_that_do_not_fit(
    begin: list[int], size: list[int], message: str, constant: tuple[int, ...]
) -> None:
    arrays = [X, np.array(begin, np.int32), np.array(size, np.int32)]
    with pytest.raises(ShapeError, match=message):
        run_reference(Slice, arrays, constant)


@pytest.mark.parametrize("constant", [(1, 2), ()])
def test_slice_refuses_vectors_of_another_length(constant: tuple[int, ...]) -> None:
    arrays = [X, np.zeros(3, np.int32), np.zeros(2, np.int32)]
    with pytest.raises(ShapeError, match="axes: size has 2, input has 3"):
        one_op(Slice, arrays, constant)
