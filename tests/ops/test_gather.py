"""GATHER against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.gather import Gather
from tests.support import one_op, run_litert, run_reference

X = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("shape", "axis", "batch_dims"),
    [
        ((), 0, 0),
        ((6,), 1, 0),
        ((6,), -1, 0),
        ((2, 3), 2, 0),
        ((2, 3), 2, 1),
        ((2, 3), 2, 2),
        ((2, 7), 1, 1),
        ((2, 3, 2), 3, 2),
        ((2, 3), 3, -1),
        ((0,), 1, 0),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather_gives_what_litert_gives(
    shape: tuple[int, ...], axis: int, batch_dims: int, dtype: type[np.generic]
) -> None:
    indices = np.random.default_rng(0).integers(0, X.shape[axis], shape).astype(dtype)
    ours, theirs = (
        run(Gather, [X, indices], axis=axis, batch_dims=batch_dims)[0]
        for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_gather_takes_every_type(dtype: type[np.generic]) -> None:
    (y,) = run_reference(Gather, [X.astype(dtype), np.array([1, 1], np.int32)], axis=2)
    np.testing.assert_array_equal(y, X.astype(dtype)[:, :, [1, 1]], strict=True)


def test_gather_of_an_empty_batch_is_empty() -> None:
    arrays: list[Array] = [np.zeros((0, 3), np.float32), np.zeros((0, 5), np.int32)]
    assert run_reference(Gather, arrays, axis=1, batch_dims=1)[0].shape == (0, 5)


def test_gather_keeps_unknown_dimensions() -> None:
    graph = Graph()
    params, indices = graph.add_input("params", (None, 3, 4)), graph.add_input("i", (2, None))
    assert Gather(params, indices, axis=1).infer_shape() == (None, 2, None, 4)
    assert Gather(params, indices, axis=1, batch_dims=1).infer_shape() == (2, None, 4)


@pytest.mark.parametrize("index", [-1, 3, 2**40])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_gather_refuses_indices_out_of_range(index: int, constant: tuple[int, ...]) -> None:
    arrays: list[Array] = [X, np.array([0, index, 1], np.int64)]
    with pytest.raises(ShapeError, match=f"index {index} is out of range: axis 1 has 3 elements"):
        run_reference(Gather, arrays, constant, axis=1)


def test_gather_refuses_an_index_into_nothing() -> None:
    arrays: list[Array] = [np.zeros((0, 2), np.float32), np.array([0], np.int32)]
    with pytest.raises(ShapeError, match="index 0 is out of range: axis 0 has 0 elements"):
        run_reference(Gather, arrays)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"axis": 4}, "axis is 4, the tensor has 4 axes"),
        ({"axis": 0, "batch_dims": 1}, "batch_dims is 1, at most axis 0 and the 2 axes of indices"),
        ({"axis": 3, "batch_dims": 3}, "batch_dims is 3, at most axis 3 and the 2 axes"),
        ({"axis": 3, "batch_dims": -3}, "batch_dims is -3"),
        ({"axis": 2, "batch_dims": 2}, "batch axis 1: params has 3, indices has 5"),
    ],
)
def test_gather_refuses_axes_that_do_not_fit(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(Gather, [X, np.zeros((2, 5), np.int32)], **attributes)
