"""Reductions: numbers against LiteRT, and shapes."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, Op, ShapeError, UnsupportedError, Value
from luciole.ir.ops.reduce import Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, Sum
from luciole.schema.enums import TensorType
from tests.native_support import check_compiled, declines_computed, run_compiled
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

ALL = (Mean, Sum, ReduceMax, ReduceMin)
AXES: tuple[Array, ...] = tuple(
    np.array(a, np.int32)
    for a in ([], [0], [-1], -2, [0, 2], [1, -2, 1], [2, 0, 1], [0, 1, 2, 3], 3)
)
LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_numbers_are_those_of_litert(cls: type[Op], dtype: DTypeLike, keep_dims: bool) -> None:
    x = np.random.default_rng(5).normal(0, 50, (3, 5, 2, 7)).astype(dtype)
    for axes in AXES:
        both = (
            run(cls, [x, axes], (1,), keep_dims=keep_dims)[0] for run in (run_reference, run_litert)
        )
        ours, theirs = both
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-6 if dtype is np.float32 else 0, atol=2e-5 * (dtype is np.float32)
        )


@pytest.mark.parametrize("cls", ALL)
def test_a_scalar_without_axes_stays(cls: type[Op]) -> None:
    pair = [np.array(3, np.float32), np.zeros(0, np.int32)]
    assert run_reference(cls, pair, (1,))[0] == run_litert(cls, pair, (1,))[0] == 3


@pytest.mark.parametrize("cls", [Mean, Sum])
def test_float_extremes_are_those_of_litert(cls: type[Op]) -> None:
    inf, nan = np.inf, np.nan
    x = np.array(
        [[-inf, -inf], [nan, 1], [inf, nan], [inf, -inf], [1e-40, -0.0], [1, 2]], np.float32
    )
    ours, theirs = (
        run(cls, [x, np.array([1], np.int32)], (1,))[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_the_maximum_skips_nan_like_litert() -> None:
    inf, nan = np.inf, np.nan
    x = np.array(
        [[-inf, -inf], [nan, 1], [1, nan], [inf, nan], [nan, nan], [inf, -inf]], np.float32
    )
    ours, theirs = (
        run(ReduceMax, [x, np.array([1], np.int32)], (1,))[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, np.array([-inf, 1, 1, inf, -inf, inf], np.float32))
    np.testing.assert_array_equal(np.maximum(ours, LOWEST), theirs)


def test_the_minimum_skips_nan_like_litert() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, inf], [nan, 1], [1, nan], [-inf, nan], [nan, nan], [inf, inf]], np.float32)
    ours, theirs = (
        run(ReduceMin, [x, np.array([1], np.int32)], (1,))[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, np.array([-inf, 1, 1, -inf, inf, inf], np.float32))
    np.testing.assert_array_equal(np.minimum(ours, -LOWEST), theirs)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_the_minimum_takes_quantized_types_like_litert(dtype: DTypeLike) -> None:
    x = np.random.default_rng(5).integers(0, 100, (3, 5, 2)).astype(dtype)
    pair = [x, np.array([0, 2], np.int32)]
    ours, theirs = (run(ReduceMin, pair, (1,))[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_products_are_those_of_litert(dtype: DTypeLike, keep_dims: bool) -> None:
    x = np.random.default_rng(5).uniform(-6, 6, (3, 5, 2, 7)).astype(dtype)
    for axes in AXES:
        ours, theirs = (
            run(ReduceProd, [x, axes], (1,), keep_dims=keep_dims)[0]
            for run in (run_reference, run_litert)
        )
        np.testing.assert_allclose(ours, theirs, rtol=2e-6 * (dtype is np.float32), strict=True)


@pytest.mark.parametrize("cls", [ReduceAny, ReduceAll, ReduceMax, ReduceMin, ReduceProd, Sum])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_truth_values_are_those_of_litert(cls: type[Op], keep_dims: bool) -> None:
    few = cls in (ReduceAny, ReduceMax, Sum)
    x = np.random.default_rng(5).integers(0, 5, (3, 5, 2, 7)) > (3 if few else 0)
    for axes in AXES:
        ours, theirs = (
            run(cls, [x, axes], (1,), keep_dims=keep_dims)[0] for run in (run_reference, run_litert)
        )
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(
    ("cls", "dtype"),
    [
        (ReduceProd, np.float32),
        (ReduceProd, np.int64),
        (ReduceAny, np.bool_),
        (ReduceAll, np.bool_),
    ],
)
def test_nothing_to_multiply_or_to_ask_is_as_in_litert(cls: type[Op], dtype: DTypeLike) -> None:
    pair = [np.ones((0, 2), dtype), np.array([0], np.int32)]
    ours, theirs = (run(cls, pair, (1,))[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("cls", [ReduceMin, ReduceProd])
@pytest.mark.parametrize("axes", [[0], [1], [-1], [0, 2], [0, 1, 2], []])
def test_compiled_reductions_give_what_the_reference_gives(cls: type[Op], axes: list[int]) -> None:
    x = np.random.default_rng(5).uniform(-1.5, 1.5, (3, 19, 37)).astype(np.float32)
    pair: list[Array] = [x, np.array(axes, np.int32)]
    check_compiled(cls, pair, (1,))
    assert declines_computed(cls, pair, (1,), 1, keep_dims=True)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [1, 2], [0, 1, 2]])
def test_products_are_made_in_the_order_of_litert(axes: list[int]) -> None:
    exponents = np.random.default_rng(5).uniform(-30, 30, (3, 19, 37))
    pair: list[Array] = [(10.0**exponents).astype(np.float32), np.array(axes, np.int32)]
    theirs = run_litert(ReduceProd, pair, (1,))[0]
    np.testing.assert_array_equal(run_reference(ReduceProd, pair, (1,))[0], theirs, strict=True)
    np.testing.assert_array_equal(run_compiled(ReduceProd, pair, (1,))[0], theirs, strict=True)


def test_compiled_products_of_parts_that_are_too_large_stay_finite() -> None:
    x = np.ones(40, np.float32)
    x[0::8], x[1::8] = 1e30, 1e-30
    pair: list[Array] = [x, np.array([0], np.int32)]
    theirs = run_litert(ReduceProd, pair, (1,))[0]
    assert np.isfinite(theirs).all()
    np.testing.assert_array_equal(run_compiled(ReduceProd, pair, (1,))[0], theirs, strict=True)


def test_the_compiled_minimum_skips_nan() -> None:
    x = np.full((2, 40), np.nan, np.float32)
    x[0, 21], x[0, 3] = -1, 5
    check_compiled(ReduceMin, [x, np.array([1], np.int32)], (1,))
    check_compiled(ReduceMin, [x[:, :0], np.array([1], np.int32)], (1,))


def test_truth_refuses_numbers() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32; there is BOOL"):
        run_reference(ReduceAny, [np.ones((2, 3), np.float32), np.array([0], np.int32)], (1,))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_nothing_to_reduce_is_as_in_litert(cls: type[Op], dtype: DTypeLike) -> None:
    pair = [np.ones((0, 2), dtype), np.array([0], np.int32)]
    ours, theirs = (run(cls, pair, (1,))[0] for run in (run_reference, run_litert))
    if cls in (ReduceMax, ReduceMin) and dtype is np.float32:
        ours = np.clip(ours, LOWEST, -LOWEST)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_wrap_and_round_like_litert(cls: type[Op], dtype: DTypeLike) -> None:
    largest = np.iinfo(dtype).max
    for values in ([largest] * 4, [-largest - 1, -1], [-7, -4], [7, 4]):
        pair = [np.array(values, dtype), np.array([0], np.int32)]
        ours, theirs = (run(cls, pair, (1,))[0] for run in (run_reference, run_litert))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("cls", ALL)
def test_axes_may_be_computed(cls: type[Op]) -> None:
    x = np.random.default_rng(5).normal(0, 5, (3, 5)).astype(np.float32)
    pair: list[Array] = [x, np.array([-1], np.int64)]
    ours = run_reference(cls, pair, keep_dims=True)[0]
    np.testing.assert_array_equal(ours, run_reference(cls, pair, (1,), keep_dims=True)[0])


def test_shapes_with_unknown_extents() -> None:
    graph = Graph()
    x, axes = graph.add_input("x", (None, 3, 5)), graph.add_constant("a", np.array([-1], np.int32))
    assert Mean(x, axes).result_shapes() == ((None, 3),)
    assert Mean(x, axes, keep_dims=True).result_shapes() == ((None, 3, 1),)
    computed = graph.add_input("b", (2,), TensorType.INT32)
    assert Sum(x, computed, keep_dims=True).result_shapes() == ((None, None, None),)
    op = graph.append(Sum(x, computed), results=[graph.add_value(Value("y", x.dtype, (3,)))])
    assert op.result_shapes() == ((None,),)


def test_reduction_refuses_computed_axes_without_a_declared_rank() -> None:
    graph = Graph()
    x, axes = graph.add_input("x", (2, 3)), graph.add_input("a", (1,), TensorType.INT32)
    with pytest.raises(ShapeError, match="axes are computed"):
        Sum(x, axes).result_shapes()


@pytest.mark.parametrize("axis", [2, -3])
@pytest.mark.parametrize("constant", [(), (1,)])
def test_reduction_refuses_an_axis_that_is_not_there(axis: int, constant: tuple[int, ...]) -> None:
    pair = [np.ones((2, 3), np.float32), np.array([0, axis], np.int32)]
    with pytest.raises(ShapeError, match=f"a reduction axis is {axis}, the tensor has 2 axes"):
        run_reference(Mean, pair, constant, keep_dims=True)


@pytest.mark.parametrize("constant", [(), (1,)])
def test_reduction_refuses_more_axes_than_any_operand_names(constant: tuple[int, ...]) -> None:
    pair = [np.ones((2, 3), np.float32), np.zeros(65537, np.int32)]
    with pytest.raises(ShapeError, match="reduction_indices has 65537 entries, at most 65536 are"):
        run_reference(Mean, pair, constant, keep_dims=True)


def test_reduction_refuses_floats_as_axes() -> None:
    pair = [np.ones((2, 3), np.float32), np.array([0], np.float32)]
    with pytest.raises(ShapeError, match="reduction_indices is float32 of rank 1"):
        run_reference(Mean, pair, (1,))


def test_reduction_refuses_small_integers_without_scales() -> None:
    with pytest.raises(LucioleError, match="the input has no scale; one, or one per channel"):
        run_reference(Sum, [np.ones((2, 3), np.int8), np.array([0], np.int32)], (1,))
