"""SQUEEZE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.squeeze import Squeeze
from tests.support import one_op, run_litert, run_reference


@pytest.mark.parametrize("dims", [(), (0,), (2,), (-1,), (0, 2), (4, 2, -5)])
def test_squeeze_gives_what_litert_gives(dims: tuple[int, ...]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3, 1)
    ours, theirs = (run(Squeeze, [x], squeeze_dims=dims)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert not np.shares_memory(ours, x)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_squeeze_takes_every_type(dtype: type[np.generic]) -> None:
    x = np.ones((1, 2, 1), dtype)
    np.testing.assert_array_equal(run_reference(Squeeze, [x])[0], x[0, :, 0], strict=True)


def test_squeeze_keeps_unknown_dimensions() -> None:
    x = Graph().add_input("x", (None, 1, None, 3))
    assert Squeeze(x, squeeze_dims=(1,)).infer_shape() == (None, None, 3)
    assert Squeeze(x, squeeze_dims=(0, -2)).infer_shape() == (1, 3)


def test_squeeze_takes_the_rank_from_the_file_where_nothing_else_tells_it() -> None:
    graph = Graph()
    op = Squeeze(graph.add_input("x", (None, 1)))
    with pytest.raises(ShapeError, match=r"rank of the result is unknown: input is \[\?,1\]"):
        op.infer_shape()
    graph.append(op, results=[graph.add_input("y", (1,))])
    assert op.infer_shape() == (None,)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((1,), "squeeze_dims: axis 1 has 2 elements, only 1 can be left out"),
        ((3,), "squeeze_dims is 3, the tensor has 3 axes"),
    ],
)
def test_squeeze_refuses_axes_that_cannot_go(dims: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(Squeeze, [np.zeros((1, 2, 1), np.float32)], squeeze_dims=dims)
