"""SHAPE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError, TensorType
from luciole.ir.ops.shape import Shape
from tests.support import one_op, run_litert, run_reference


@pytest.mark.parametrize("shape", [(2, 3, 4), (7,), (1, 0, 2)])
@pytest.mark.parametrize("out_type", [TensorType.INT32, TensorType.INT64])
def test_shape_gives_what_litert_gives(shape: tuple[int, ...], out_type: TensorType) -> None:
    x = np.zeros(shape, np.float32)
    (ours,) = run_reference(Shape, [x], out_type=out_type)
    if 0 not in shape:
        (theirs,) = run_litert(Shape, [x], out_type=out_type)
        np.testing.assert_array_equal(ours, theirs, strict=True)
    np.testing.assert_array_equal(ours, shape)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_shape_takes_every_type(dtype: type[np.generic]) -> None:
    (y,) = run_reference(Shape, [np.zeros((3, 1), dtype)], out_type=TensorType.INT32)
    np.testing.assert_array_equal(y, np.array([3, 1], np.int32), strict=True)


def test_shape_of_a_scalar_is_empty() -> None:
    (y,) = run_reference(Shape, [np.array(1, np.float32)], out_type=TensorType.INT64)
    np.testing.assert_array_equal(y, np.zeros(0, np.int64), strict=True)


def test_shape_folds_where_every_dimension_is_known() -> None:
    graph = Graph()
    op = Shape(graph.add_input("x", (2, 5)), out_type=TensorType.INT64)
    folded = op.fold()
    assert folded is not None
    np.testing.assert_array_equal(folded, np.array([2, 5], np.int64), strict=True)
    dynamic = Shape(graph.add_input("y", (None, 5)), out_type=TensorType.INT64)
    assert dynamic.fold() is None
    assert dynamic.infer_shape() == (2,)


def test_shape_refuses_to_give_floats() -> None:
    op = Shape(Graph().add_input("x", (2, 5)))
    assert op.fold() is None
    with pytest.raises(ShapeError, match="out_type is FLOAT32, INT32 or INT64 is needed"):
        one_op(Shape, [np.zeros(2, np.float32)])


def test_shape_refuses_an_extent_that_its_type_has_not() -> None:
    x = Graph().add_input("x", (2**31, None))
    with pytest.raises(ShapeError, match="an extent of 2147483648 is too large for INT32"):
        Shape(x, out_type=TensorType.INT32).infer_shape()
    assert Shape(x, out_type=TensorType.INT64).infer_shape() == (2,)
