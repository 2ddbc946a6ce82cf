"""CUMSUM against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError, TensorType
from luciole.ir.ops.cumsum import Cumsum
from tests.support import run_litert, run_reference


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_are_those_of_litert(
    dtype: DTypeLike, exclusive: bool, reverse: bool, axis: int
) -> None:
    x = np.random.default_rng(1).normal(0, 50, (2, 3, 41)).astype(dtype)
    ours, theirs = (
        run(Cumsum, [x, np.array(axis, np.int32)], (1,), exclusive=exclusive, reverse=reverse)[0]
        for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6 * (dtype is np.float32), strict=True)


@pytest.mark.parametrize("exclusive", [False, True])
def test_an_empty_axis_has_no_sums(exclusive: bool) -> None:
    pair = [np.zeros((2, 0), np.float32), np.array(1, np.int32)]
    assert run_reference(Cumsum, pair, exclusive=exclusive)[0].shape == (2, 0)


def test_unknown_extents_stay_unknown() -> None:
    graph = Graph()
    x, axis = graph.add_input("x", (None, 3)), graph.add_input("a", (), TensorType.INT32)
    assert Cumsum(x, axis).result_shapes() == ((None, 3),)


@pytest.mark.parametrize(
    ("axis", "message"),
    [([2], "axis is 2, the tensor has 2 axes"), ([-3], "axis is -3"), ([0, 1], "has 2 entries")],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_cumsum_refuses_axes_outside(
    axis: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Cumsum, [np.ones((2, 3), np.float32), np.array(axis, np.int32)], constant)
