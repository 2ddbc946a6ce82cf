"""EXPAND_DIMS against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.expand_dims import ExpandDims
from tests.support import run_litert, run_reference

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_expand_dims_gives_what_litert_gives(axis: int, constant: tuple[int, ...]) -> None:
    arrays = [X, np.array([axis], np.int32)]
    ours, theirs = (run(ExpandDims, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert not np.shares_memory(ours, X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_expand_dims_takes_every_type(dtype: type[np.generic]) -> None:
    (y,) = run_reference(ExpandDims, [X.astype(dtype), np.array(1, np.int64)], (1,))
    np.testing.assert_array_equal(y, X.astype(dtype)[:, None], strict=True)


def test_expand_dims_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 3)), graph.add_input("axis", ())
    axis = graph.add_constant("one", np.array(1, np.int32))
    assert ExpandDims(x, axis).infer_shape() == (None, 1, 3)
    assert ExpandDims(x, computed).infer_shape() == (None, None, None)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([3], "axis is 3, the tensor has 3 axes"),
        ([-4], "axis is -4"),
        ([0, 1], "axis has 2 entries, 1 are needed"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_expand_dims_refuses_axes_outside(
    axis: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(ExpandDims, [X, np.array(axis, np.int32)], constant)
