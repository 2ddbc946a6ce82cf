"""STRIDED_SLICE against LiteRT and, where LiteRT cannot be asked, against Python's own slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, Value
from luciole.ir.ops.strided_slice import StridedSlice
from tests.support import one_op, run_litert, run_reference

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
INT32 = np.iinfo(np.int32)


def operands(x: Array, begin: list[int], end: list[int], strides: list[int]) -> list[Array]:
    return [x, *(np.array(v, np.int32) for v in (begin, end, strides))]


CASES: list[tuple[list[int], list[int], list[int], dict[str, int]]] = [
    ([0, 1, 2], [3, 3, 5], [1, 1, 2], {}),
    ([-1, -2, -1], [-4, -9, 0], [-1, -1, -2], {}),
    ([9, 9, 9], [-9, -9, -9], [-1, -2, -3], {}),
    ([-9, -9, 2], [9, 9, 2], [1, 2, 1], {}),
    ([INT32.min, 0, INT32.max], [INT32.max, 1, INT32.min], [1, 1, -1], {}),
    ([2, 2, 2], [1, 1, 1], [1, 1, 1], {"begin_mask": 0b011, "end_mask": 0b101}),
    ([1, 1, 1], [2, 2, 2], [-1, -1, -1], {"begin_mask": 0b111, "end_mask": 0b110}),
    ([1], [3], [1], {}),
    ([1, 0], [2, 3], [1, 2], {"shrink_axis_mask": 0b01}),
    ([-1, -1, -1], [0, 0, 0], [1, 1, 1], {"shrink_axis_mask": 0b111}),
    ([2, 1, 1], [0, 2, 2], [1, 1, 1], {"shrink_axis_mask": 0b001, "begin_mask": 0b001}),
    ([0, 1], [0, 3], [1, 1], {"ellipsis_mask": 0b01}),
    ([1, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis_mask": 0b010}),
    ([0, 0, 0, 1], [0, 0, 0, 3], [1, 1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 0b0110}),
    ([0, 1, 1], [0, 3, 2], [1, 1, 1], {"new_axis_mask": 0b001}),
    ([1, 0, 1], [3, 0, 2], [1, 1, 1], {"new_axis_mask": 0b010, "shrink_axis_mask": 0b110}),
    ([0, 0, 3], [0, 2, 0], [1, 1, 1], {"ellipsis_mask": 0b001, "shrink_axis_mask": 0b100}),
    ([0, 0], [0, 0], [1, 1], {"ellipsis_mask": 0b01, "new_axis_mask": 0b11}),
]


@pytest.mark.parametrize(("begin", "end", "strides", "masks"), CASES)
@pytest.mark.parametrize("constant", [(1, 2, 3), ()])
def test_strided_slice_gives_what_litert_gives(
    begin: list[int],
    end: list[int],
    strides: list[int],
    masks: dict[str, int],
    constant: tuple[int, ...],
) -> None:
    arrays = operands(X, begin, end, strides)
    (ours,) = run_reference(StridedSlice, arrays, constant, **masks)
    # LiteRT does not hand out an empty tensor whose shape is found at run time.
    (theirs,) = run_litert(StridedSlice, arrays, constant if ours.size else (1, 2, 3), **masks)
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.flags.c_contiguous
    assert not np.shares_memory(ours, X)


@pytest.mark.parametrize("seed", range(40))
def test_strided_slice_of_random_entries_gives_what_litert_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    begin, end = rng.integers(-7, 8, (2, count)).tolist()
    strides = (rng.integers(1, 4, count) * rng.choice([-1, 1], count)).tolist()
    masks = {name: int(rng.integers(0, 8)) for name in ("begin_mask", "end_mask")}
    arrays = operands(X, begin, end, strides)
    ours, theirs = (
        run(StridedSlice, arrays, (1, 2, 3), **masks)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks"),
    [
        ([1, 0, 2], [2, 4, 3], [1, 1, 1], {}),
        ([0, 1, 0], [3, 3, 5], [2, 2, 3], {}),
        ([2, 3, 4], [-3, -2, -4], [-1, -1, -2], {}),
        ([9, 1, 9], [1, 2, 2], [1, 1, 1], {"begin_mask": 0b101}),
    ],
)
@pytest.mark.parametrize("constant", [(1, 2, 3), (2, 3)])
def test_strided_slice_with_offset_counts_end_from_begin(
    begin: list[int],
    end: list[int],
    strides: list[int],
    masks: dict[str, int],
    constant: tuple[int, ...],
) -> None:
    (y,) = run_reference(
        StridedSlice, operands(X, begin, end, strides), constant, offset=True, **masks
    )
    first = [0 if masks and masks["begin_mask"] >> i & 1 else b for i, b in enumerate(begin)]
    picked = [list(range(b, b + e, s)) for b, e, s in zip(first, end, strides, strict=True)]
    np.testing.assert_array_equal(y, X[np.ix_(*picked)], strict=True)


def test_strided_slice_with_offset_gives_what_litert_gives() -> None:
    arrays = operands(X, [1, 0, 1], [2, 3, 4], [1, 2, 2])
    for constant in ((1, 2, 3), (2, 3)):
        ours, theirs = (
            run(StridedSlice, arrays, constant, offset=True)[0]
            for run in (run_reference, run_litert)
        )
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(
    ("key", "count", "masks"),
    [
        ((..., slice(None), slice(None), slice(None)), 4, {"ellipsis_mask": 1}),
        ((slice(None), slice(None), slice(None), ...), 4, {"ellipsis_mask": 8}),
        (
            (..., None, slice(None), slice(None), slice(None)),
            5,
            {"ellipsis_mask": 1, "new_axis_mask": 2},
        ),
    ],
)
def test_strided_slice_with_an_ellipsis_of_no_axes(
    key: tuple[Any, ...], count: int, masks: dict[str, int]
) -> None:
    arrays = operands(X, [0] * count, [0] * count, [1] * count)
    edges = {"begin_mask": 2**count - 1, "end_mask": 2**count - 1}
    (y,) = run_reference(StridedSlice, arrays, (1, 2, 3), **masks, **edges)
    np.testing.assert_array_equal(y, X[key], strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_strided_slice_takes_every_type(dtype: type[np.generic]) -> None:
    arrays = operands(X.astype(dtype), [2, 0], [0, 4], [-1, 3])
    (y,) = run_reference(StridedSlice, arrays)
    np.testing.assert_array_equal(y, X.astype(dtype)[2:0:-1, 0:4:3], strict=True)


def slice_of(known: str, **masks: Any) -> tuple[int | None, ...]:
    """The shape of x[1:4:2, 1:4:2] with x [?, 6], only the named vectors being known."""
    graph = Graph()
    vectors: list[Value] = []
    for name, n in (("begin", 1), ("end", 4), ("strides", 2)):
        array = np.array([n, n], np.int32)
        value = graph.add_constant(name, array) if name in known else graph.add_input(name, (2,))
        vectors.append(value)
    begin, end, strides = vectors
    return StridedSlice(graph.add_input("x", (None, 6)), begin, end, strides, **masks).infer_shape()


def test_strided_slice_keeps_unknown_dimensions() -> None:
    assert slice_of("begin end strides") == (None, 2)
    assert slice_of("end strides") == (None, None)
    assert slice_of("begin end") == (None, None)
    assert slice_of("end strides", begin_mask=2) == (None, 2)
    assert slice_of("begin strides", end_mask=2) == (None, 3)
    assert slice_of("end strides", shrink_axis_mask=1) == (None,)
    assert slice_of("end strides", offset=True) == (2, 2)
    assert slice_of("", new_axis_mask=1) == (1, None, 6)
    assert slice_of("", ellipsis_mask=1) == (None, None)


def test_strided_slice_takes_the_rank_from_the_file_where_nothing_else_tells_it() -> None:
    graph = Graph()
    x, begin, end, strides = (graph.add_input(name, (None,)) for name in "xbes")
    op = StridedSlice(x, begin, end, strides)
    with pytest.raises(ShapeError, match="the rank of the result is unknown"):
        op.infer_shape()
    graph.append(op, results=[graph.add_input("y", (2, 3))])
    assert op.infer_shape() == (None, None)


@pytest.mark.parametrize(
    ("begin", "strides", "masks", "message"),
    [
        ([0, 0], [1, 0], {}, r"strides\[1\] is 0"),
        ([0, 4], [1, 1], {"shrink_axis_mask": 2}, r"begin\[1\] is 4, the axis has 4 elements"),
        ([-4, 0], [1, 1], {"shrink_axis_mask": 1}, r"begin\[0\] is -4, the axis has 3 elements"),
        ([0, 0], [1, -1], {"shrink_axis_mask": 2}, r"strides\[1\] is -1, an axis that shrinks"),
        ([0] * 4, [1] * 4, {}, "begin speaks of 4 axes, input has 3"),
        (
            [0, 0],
            [1, 1],
            {"ellipsis_mask": 3},
            "ellipsis_mask speaks of 2 entries, one is possible",
        ),
        ([3, 0], [1, 1], {"offset": 1}, r"begin\[0\] 3 plus end 1 lies outside of the 3 elements"),
    ],
)
@pytest.mark.parametrize("constant", [(1, 2, 3), ()])
def test_strided_slice_refuses_impossible_entries(
    begin: list[int],
    strides: list[int],
    masks: dict[str, int],
    message: str,
    constant: tuple[int, ...],
) -> None:
    arrays = operands(X, begin, [1] * len(begin), strides)
    with pytest.raises(ShapeError, match=message):
        run_reference(StridedSlice, arrays, constant, **masks)


@pytest.mark.parametrize("constant", [(1, 2, 3), ()])
def test_strided_slice_refuses_offsets_beyond_all_numbers(constant: tuple[int, ...]) -> None:
    begin, end, strides = (np.array([n], np.int64) for n in (2, -(2**63), -1))
    with pytest.raises(ShapeError, match="lies outside of the"):
        run_reference(StridedSlice, [X, begin, end, strides], constant, offset=True)


def test_strided_slice_of_an_unknown_axis_may_count_beyond_all_numbers() -> None:
    graph = Graph()
    begin, end, strides = (
        graph.add_constant(name, np.array([n], np.int64))
        for name, n in (("begin", 2), ("end", -(2**63)), ("strides", -1))
    )
    x = graph.add_input("x", (None,))
    assert StridedSlice(x, begin, end, strides, offset=True).infer_shape() == (2**63,)


def test_strided_slice_refuses_vectors_of_other_lengths() -> None:
    with pytest.raises(ShapeError, match="entries: begin has 2, end has 1"):
        one_op(StridedSlice, operands(X, [0, 0], [1], [1, 1]))
