"""Compiled kernels of what moves, counts and picks integers, beside LiteRT and the references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Op, ShapeError, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.elementwise_binary import FloorDiv, FloorMod
from luciole.ir.ops.elementwise_unary import Round
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.reduce import ReduceMax, ReduceMin
from tests.ops.int8_support import integers
from tests.support import one_op, run_litert, run_native

RNG = np.random.default_rng(3)


def check(cls: type[Op], arrays: list[Array], constant: tuple[int, ...], **options: Any) -> None:
    """Compiled results are those of LiteRT."""
    fed = [array for number, array in enumerate(arrays) if number not in constant]
    (expected,) = run_litert(cls, arrays, constant, **options)
    result = run_native(one_op(cls, arrays, constant, **options), *fed)
    np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize(
    ("cls", "dtype"),
    [(FloorDiv, np.int16), (FloorMod, np.int32), (FloorMod, np.int64)],
)
def test_floored_quotients_by_constants(cls: type[Op], dtype: Any) -> None:
    x = RNG.integers(-300, 300, (3, 5, 7)).astype(dtype)
    single = [np.array(13, dtype)] if dtype is not np.int64 else []
    for y in (*single, np.array([7, -3, 250, 2, -2, 1, 9], dtype)):
        expected = (np.floor_divide if cls is FloorDiv else np.remainder)(x, y)
        result = run_native(one_op(cls, [x, y], (1,)), x)
        np.testing.assert_array_equal(result, expected, strict=True)


def test_divisors_of_minus_one_and_computed_ones_are_left_to_the_reference() -> None:
    """The lowest integer by -1 stops a processor."""
    x, lowest = np.array([-(2**31), 5], np.int32), np.array([-1, 2], np.int32)
    for constant in ((1,), ()):
        model = one_op(FloorMod, [x, lowest], constant)
        interpreter = Interpreter(model)
        fed = dict(zip([v.name for v in model.graph.inputs], [x, lowest], strict=False))
        (result,) = interpreter.run(fed).values()
        np.testing.assert_array_equal(result, [0, 1])


def test_numbers_are_rounded_to_even_halves() -> None:
    x = np.arange(-6, 6.5, 0.25).astype(np.float32)
    x = np.append(x, [2.0**23 + 1, -(2.0**23) - 1, 2.0**22 + 0.5, 1e30, -np.inf, np.nan, -0.0])
    x = x.astype(np.float32)
    np.testing.assert_array_equal(run_native(one_op(Round, [x]), x), np.rint(x), strict=True)


TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


@pytest.mark.parametrize("to", [*TYPES, TensorType.FLOAT32, TensorType.BOOL])
@pytest.mark.parametrize("dtype", [*TYPES, TensorType.BOOL, TensorType.FLOAT32])
def test_elements_are_cast(dtype: TensorType, to: TensorType) -> None:
    """Integers wrap, as NumPy's do; floats and integers of 64 bits are left to the reference."""
    if to == dtype or {dtype, to} == {TensorType.FLOAT32, TensorType.INT64}:
        pytest.skip("no compiled form")
    x = RNG.integers(0, 3, (4, 50)).astype(NUMPY[dtype])
    if dtype in TYPES:
        x[0] = integers(RNG, NUMPY[dtype], (50,))
    model = one_op(Cast, [x], in_data_type=dtype, out_data_type=to)
    np.testing.assert_array_equal(run_native(model, x), x.astype(NUMPY[to]), strict=True)


@pytest.mark.parametrize(
    ("cls", "dtype"),
    [
        *((ArgMax, dtype) for dtype in (np.float32, np.int8, np.uint8, np.int32)),
        *((ArgMin, dtype) for dtype in (np.float32, np.int8)),
    ],
)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_places_of_extremes(cls: type[Op], dtype: Any, axis: int) -> None:
    x = RNG.integers(0, 9, (3, 11, 5)).astype(dtype)
    for output_type in (TensorType.INT32, TensorType.INT64):
        check(cls, [x, np.array(axis, np.int32)], (1,), output_type=output_type)


def test_places_of_extremes_skip_nan_as_the_reference() -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[nan, 2, 3], [nan, -inf, nan], [1, nan, 1], [nan, nan, nan]], np.float32)
    axis = np.array(1, np.int32)
    for cls, places in ((ArgMax, [2, 0, 0, 0]), (ArgMin, [1, 1, 0, 0])):
        model = one_op(cls, [x, axis], (1,), output_type=TensorType.INT64)
        np.testing.assert_array_equal(run_native(model, x), places)


@pytest.mark.parametrize(
    ("cls", "dtype", "axes"),
    [
        *((ReduceMax, np.int8, axes) for axes in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2])),
        *((ReduceMin, np.int64, axes) for axes in ([0], [1], [2], [0, 2], [1, 2], [0, 1, 2])),
        *((ReduceMax, dtype, [1]) for dtype in (np.uint8, np.int32)),  # columns
        *((ReduceMax, dtype, [1, 2]) for dtype in (np.int16, np.int64)),  # rows
        (ReduceMin, np.uint8, [1, 2]),
    ],
)
def test_extremes_of_integers(cls: type[Op], dtype: Any, axes: list[int]) -> None:
    x = integers(RNG, dtype, (4, 6, 37))
    model = one_op(cls, [x, np.array(axes, np.int32)], (1,))
    expected = (np.max if cls is ReduceMax else np.min)(x, axis=tuple(axes))
    np.testing.assert_array_equal(run_native(model, x), expected, strict=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "of_indices", "axis", "batch"),
    [((9, 5), (4,), 0, 0), ((3, 9, 2), (2, 2), 1, 0), ((2, 7, 3), (2, 4), 1, 1), ((6,), (), 0, 0)],
)
def test_slices_are_picked_by_computed_indices(
    dtype: Any, shape: tuple[int, ...], of_indices: tuple[int, ...], axis: int, batch: int
) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    indices = np.asarray(RNG.integers(0, shape[axis], of_indices), dtype)
    check(Gather, [x, indices], (0,), axis=axis, batch_dims=batch)


def test_a_computed_index_beyond_the_axis_is_refused_and_the_next_run_is_fine() -> None:
    x = np.arange(10, dtype=np.int8).reshape(5, 2)
    model = one_op(Gather, [x, np.array([0, 4], np.int32)], (0,))
    interpreter = Interpreter(model)
    name = model.graph.inputs[0].name
    for wrong in ([1, 5], [-1, 0]):
        with pytest.raises(ShapeError, match=r"index -?\d is out of range: axis 0 has 5 elements"):
            interpreter.run({name: np.array(wrong, np.int32)})
        (result,) = interpreter.run({name: np.array([3, 0], np.int32)}).values()
        np.testing.assert_array_equal(result, x[[3, 0]])
