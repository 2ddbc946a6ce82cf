"""REDUCE_WINDOW: numbers against LiteRT, and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, TensorType, UnsupportedError
from luciole.ir.ops.reduce_window import ReduceWindow
from luciole.schema.enums import ReduceWindowFunction
from tests.litert_support import check_same
from tests.support import run_reference

NUMBERS = [f for f in ReduceWindowFunction if 0 < f < ReduceWindowFunction.ALL]
LOGICAL = [ReduceWindowFunction.ALL, ReduceWindowFunction.ANY]

WINDOWS = (
    ((5,), (2,), (1,), (1,)),
    ((6, 7), (2, 3), (2, 1), (1, 2)),
    ((2, 5, 4), (1, 1, 4), (1, 3, 1), (5, 1, 1)),
)


def operands(x: Array, init: Any, *windows: Any) -> list[Array]:
    return [x, np.array(init, x.dtype), *(np.array(w, np.int64) for w in windows)]


@pytest.mark.parametrize("function", NUMBERS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize(("shape", "size", "stride", "dilation"), WINDOWS)
def test_numbers_are_those_of_litert(
    shape: Any, size: Any, stride: Any, dilation: Any, dtype: Any, function: ReduceWindowFunction
) -> None:
    x = np.random.default_rng(1).integers(0, 5, shape).astype(dtype)  # sums of floats are exact
    given = operands(x, 3, size, stride, dilation)
    check_same(ReduceWindow, given, (1, 2, 3, 4), reduce_function=function)


@pytest.mark.parametrize("function", LOGICAL)
def test_truth_values_are_those_of_litert(function: ReduceWindowFunction) -> None:
    x = np.random.default_rng(2).random((6, 7)) < 0.5
    given = operands(x, function == ReduceWindowFunction.ALL, (2, 2), (1, 2), (1, 1))
    check_same(ReduceWindow, given, (1, 2, 3, 4), reduce_function=function)


def test_unknown_extents() -> None:
    graph = Graph()
    x, init = graph.add_input("x", (None, 9)), graph.add_input("init", ())
    size, stride, dilation = (graph.add_constant(n, np.array([2, 3], np.int64)) for n in "abc")
    assert ReduceWindow(x, init, size, stride, dilation).result_shapes() == ((None, 1),)
    late = graph.add_input("late", (2,), TensorType.INT64)
    assert ReduceWindow(x, init, late, stride, dilation).result_shapes() == ((None, None),)


def test_reduce_window_refuses_windows_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="a window reaches over 5 elements, the axis has 4"):
        run_reference(ReduceWindow, operands(np.ones(4, np.float32), 0, [3], [1], [2]), (2, 3, 4))


def test_reduce_window_refuses_truth_of_numbers() -> None:
    given = operands(np.ones(4, np.float32), 0, [3], [1], [1])
    with pytest.raises(UnsupportedError, match="no ALL of FLOAT32"):
        run_reference(ReduceWindow, given, (2, 3, 4), reduce_function=LOGICAL[0])
