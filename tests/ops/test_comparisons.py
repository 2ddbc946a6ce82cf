"""Comparisons against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, ShapeError, TensorType
from luciole.ir.ops import comparisons as ops
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

ALL = (ops.Less, ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.Equal, ops.NotEqual)
EXTREMES = np.array([0, -0.0, 1, -1, 1e-40, 3e38, np.inf, -np.inf, np.nan], np.float32)

each = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)


def compare(cls: type[ops.Comparison], *pair: Array) -> None:
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(
    ("x", "y"), [((), ()), ((3,), ()), ((2, 1, 5), (4, 1)), ((7, 1, 3), (7, 4, 3)), ((0, 3), (3,))]
)
def test_comparisons_are_those_of_litert(
    cls: type[ops.Comparison], dtype: DTypeLike, x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(4)
    compare(cls, *(rng.integers(-2, 3, shape).astype(dtype) for shape in (x, y)))


@each
def test_comparisons_of_extremes_are_those_of_litert(cls: type[ops.Comparison]) -> None:
    compare(cls, EXTREMES.reshape(-1, 1), EXTREMES)


@pytest.mark.parametrize("cls", [ops.Equal, ops.NotEqual])
def test_truth_values_are_equal_as_in_litert(cls: type[ops.Comparison]) -> None:
    truth = np.array([True, False])
    compare(cls, truth.reshape(-1, 1), truth)


def test_unknown_extents_stretch() -> None:
    graph = Graph()
    op = ops.Less(graph.add_input("x", (None, 1)), graph.add_input("y", (5,)))
    assert op.result_shapes() == ((None, 5),)
    assert op.result_dtypes() == (TensorType.BOOL,)


def test_comparisons_refuses_shapes_that_do_not_stretch() -> None:
    graph = Graph()
    op = ops.Less(graph.add_input("x", (2, 3)), graph.add_input("y", (2,)))
    with pytest.raises(ShapeError, match=r"shapes \[2,3\] and \[2\] do not broadcast"):
        op.result_shapes()


@each
def test_comparisons_refuses_small_integers_without_scales(cls: type[ops.Comparison]) -> None:
    # LiteRT aborts the process when the tensors have no scale.
    with pytest.raises(LucioleError, match="x has no scale; one, or one per channel, is needed"):
        run_reference(cls, [np.ones(2, np.int8)] * 2)
