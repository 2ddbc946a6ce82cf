"""SPLIT against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.split import Split
from tests.support import one_op, run_litert, run_reference

X = np.arange(96, dtype=np.float32).reshape(4, 6, 4)


@pytest.mark.parametrize(("axis", "count"), [(0, 2), (1, 3), (1, 6), (2, 4), (-1, 2), (-2, 1)])
@pytest.mark.parametrize("constant", [(0,), ()])
def test_split_gives_what_litert_gives(axis: int, count: int, constant: tuple[int, ...]) -> None:
    arrays = [np.array(axis, np.int32), X]
    ours, theirs = (
        run(Split, arrays, constant, num_splits=count) for run in (run_reference, run_litert)
    )
    assert len(ours) == len(theirs) == count
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other, strict=True)
        assert mine.flags.c_contiguous
        assert not np.shares_memory(mine, X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_split_takes_every_type(dtype: type[np.generic]) -> None:
    parts = run_reference(Split, [np.array([1], np.int64), X.astype(dtype)], num_splits=2)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), X.astype(dtype), strict=True)


def test_split_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 6)), graph.add_input("axis", ())
    axes = [graph.add_constant(str(i), np.array(i, np.int32)) for i in range(2)]
    assert Split(axes[0], x, num_splits=2).infer_shape() == ((None, 6),) * 2
    assert Split(axes[1], x, num_splits=3).infer_shape() == ((None, 2),) * 3
    assert Split(computed, x, num_splits=3).infer_shape() == ((None, None),) * 3


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([0], "axis 0 has 4 elements, they do not divide into 3 equal parts"),
        ([3], "split_dim is 3, the tensor has 3 axes"),
        ([0, 1], "split_dim has 2 entries, 1 are needed"),
    ],
)
@pytest.mark.parametrize("constant", [(0,), ()])
def test_split_refuses_what_does_not_divide(
    axis: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Split, [np.array(axis, np.int32), X], constant, num_splits=3)


def test_split_refuses_to_make_no_parts() -> None:
    graph = Graph()
    op = Split(graph.add_input("axis", ()), graph.add_input("x", (4,)))
    assert list(op.verify()) == ["num_splits is 0, it must be at least 1"]
    with pytest.raises(ShapeError, match="do not divide into 0 equal parts"):
        one_op(Split, [np.array(0, np.int32), X], (0,), num_splits=0)
