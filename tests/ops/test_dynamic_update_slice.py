"""DYNAMIC_UPDATE_SLICE against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from tests.litert_support import check_same, counted, ints
from tests.support import invoked_again, one_op, run_reference

X = counted(3, 4, 5)


@pytest.mark.parametrize("update", [(1, 2, 3), (3, 4, 5), (2, 4, 1)])
@pytest.mark.parametrize("start", [[0, 0, 0], [1, 1, 2], [-5, 9, 4], [2**31 - 1, -(2**31), 0]])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.int32, np.int64, np.bool_])
def test_boxes_lie_where_litert_has_them(
    update: tuple[int, ...], start: list[int], dtype: DTypeLike
) -> None:
    new = (counted(*update) % 2).astype(dtype)
    check_same(DynamicUpdateSlice, [X.astype(dtype), new, ints(*start)])


def test_the_operand_stays_as_it_is() -> None:
    x = X.copy()
    run_reference(DynamicUpdateSlice, [x, counted(1, 1, 1), ints(0, 0, 0)])
    np.testing.assert_array_equal(x, X)


def test_places_may_be_very_wide() -> None:
    start = np.array([2**62, -(2**62), 1], np.int64)
    (y,) = run_reference(DynamicUpdateSlice, [X, np.zeros((1, 1, 1), np.float32), start])
    assert np.argwhere(y == 0).tolist() == [[2, 0, 1]]


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, update = graph.add_input("x", (None, 3)), graph.add_input("update", (2, None))
    assert DynamicUpdateSlice(x, update, graph.add_input("at", (2,))).infer_shape() == (None, 3)


@pytest.mark.parametrize(
    ("update", "start", "message"),
    [
        ((1, 5, 1), ints(0, 0, 0), r"update \[1,5,1\] does not fit into \[3,4,5\]"),
        ((1, 1), ints(0, 0, 0), r"update \[1,1\] does not fit into \[3,4,5\]"),
        ((1, 1, 1), ints(0, 0), "axes: start_indices has 2, input has 3"),
    ],
)
def test_dynamic_update_slice_refuses_updates_that_do_not_fit(
    update: tuple[int, ...], start: Array, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(DynamicUpdateSlice, [X, counted(*update), start])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.bool_])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_are_replaced_by_a_compiled_kernel(dtype: Any, kind: Any) -> None:
    x, rows = np.arange(24).reshape(4, 3, 2).astype(dtype), np.ones((2, 3, 2), dtype)
    limits = np.iinfo(kind)
    model = one_op(DynamicUpdateSlice, [x, rows, np.zeros(3, kind)])
    interpreter = Interpreter(model)
    for place in (0, 1, 2, 3, -1, limits.min, limits.max):
        start = np.array([place, 0, 0], kind)
        (found,) = invoked_again(interpreter, [x, rows, start])
        wanted = run_reference(DynamicUpdateSlice, [x, rows, start])[0]
        np.testing.assert_array_equal(found, wanted, strict=True)
    assert [step.reason for step in interpreter.plan.steps] == [""]
