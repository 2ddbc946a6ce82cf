"""Compiled kernels that make one number of many (softmax, pools, reductions), against the
references and LiteRT.
"""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Op
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reduce import Mean, ReduceMax, Sum
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.native_support import check_compiled, declines, declines_computed, run_compiled
from tests.support import litert, one_op

pytestmark = pytest.mark.filterwarnings("error")

DISTRIBUTIONS: tuple[tuple[type[Op], dict[str, Any]], ...] = (
    (Softmax, {"beta": 1.0}),
    (Softmax, {"beta": 0.3}),
    (LogSoftmax, {}),
)
EXTREMES = np.array(
    [
        [np.inf, 1],
        [-np.inf, 1],
        [-np.inf, -np.inf],
        [np.nan, 1],
        [3e38, -3e38],
        [1e-40, 0],
        [-0.0, 0],
        [1000, -1000],
    ],
    np.float32,
)
WINDOWS = list(product(Padding, [(1, 1), (2, 1), (3, 4)], [(1, 1), (2, 3), (5, 4)]))
POOLS = (AveragePool2D, MaxPool2D)
REDUCED = (
    (5,),
    (3, 1, 4),
    (2, 5, 7, 33),
    (2, 9, 40, 3),
    (0, 3),
    (3, 0),
    (1, 1),
    (700, 3),
    (3, 1100),
)


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 5, shape).astype(np.float32)


@pytest.mark.parametrize(("cls", "attributes"), DISTRIBUTIONS)
@pytest.mark.parametrize(
    "shape", [(5,), (3, 1), (2, 3, 10), (3, 16), (3, 17), (7, 96), (2, 0), (0, 3), (9000, 5)]
)
def test_distributions_are_those_of_the_reference(
    cls: type[Op], attributes: dict[str, Any], shape: tuple[int, ...]
) -> None:
    tolerance = 2e-6 if cls is LogSoftmax else 1e-37
    check_compiled(cls, [floats(*shape)], rtol=1e-6, atol=tolerance, **attributes)


@pytest.mark.parametrize(("cls", "attributes"), DISTRIBUTIONS)
@pytest.mark.parametrize("width", [1, 12])
def test_distributions_of_extremes_are_those_of_the_reference(
    cls: type[Op], attributes: dict[str, Any], width: int
) -> None:
    check_compiled(cls, [np.tile(EXTREMES, (1, width))], rtol=1e-6, **attributes)


@pytest.mark.parametrize(("cls", "attributes"), DISTRIBUTIONS)
def test_distributions_are_those_of_litert(cls: type[Op], attributes: dict[str, Any]) -> None:
    x = floats(4, 37)
    theirs = litert(to_bytes(one_op(cls, [x], **attributes), "tflite"), [x], "AUTO")[0]
    np.testing.assert_allclose(run_compiled(cls, [x], **attributes)[0], theirs, 3e-6, 1e-30)


@pytest.mark.parametrize("beta", [0.0, -1.0])
def test_softmax_leaves_a_beta_that_is_not_positive_to_the_reference(beta: float) -> None:
    assert declines(Softmax, [floats(3, 4)], beta=beta)


def pool(padding: Padding, stride: tuple[int, int], kernel: tuple[int, int]) -> dict[str, Any]:
    names = ("padding", "stride_h", "stride_w", "filter_height", "filter_width")
    return dict(zip(names, (padding, *stride, *kernel), strict=True))


@pytest.mark.parametrize("cls", POOLS)
@pytest.mark.parametrize(("padding", "stride", "kernel"), WINDOWS)
@pytest.mark.parametrize("shape", [(2, 9, 11, 3), (1, 9, 7, 33)])
def test_pools_are_those_of_the_reference(
    cls: type[Op],
    padding: Padding,
    stride: tuple[int, int],
    kernel: tuple[int, int],
    shape: tuple[int, ...],
) -> None:
    x, tolerance = floats(*shape), 2e-6 if cls is AveragePool2D else 0
    attributes = pool(padding, stride, kernel)
    check_compiled(cls, [x], atol=tolerance, **attributes)
    x[0, 3, 3, :2], x[0, 5, 5, 1] = np.nan, np.inf
    check_compiled(cls, [x], atol=tolerance, activation=ActivationFunctionType.RELU6, **attributes)


@pytest.mark.parametrize("cls", POOLS)
def test_pools_are_those_of_litert(cls: type[Op]) -> None:
    x, attributes = floats(1, 48, 48, 17), pool(Padding.SAME, (2, 1), (2, 3))
    theirs = litert(to_bytes(one_op(cls, [x], **attributes), "tflite"), [x], "AUTO")[0]
    result = run_compiled(cls, [x], **attributes)[0]
    np.testing.assert_allclose(result, theirs, atol=2e-6 if cls is AveragePool2D else 0)


@pytest.mark.parametrize("cls", POOLS)
def test_pools_leave_what_is_not_compiled_to_the_reference(cls: type[Op]) -> None:
    window = pool(Padding.SAME, (1, 1), (2, 2))
    assert declines(cls, [floats(1, 4, 4, 2)], activation=ActivationFunctionType.TANH, **window)
    assert declines(cls, [floats(0, 4, 4, 2)], **window)


@pytest.mark.parametrize("cls", [Mean, Sum, ReduceMax])
@pytest.mark.parametrize("shape", REDUCED)
def test_reductions_are_those_of_the_reference(cls: type[Op], shape: tuple[int, ...]) -> None:
    x, count = floats(*shape), len(shape)
    for gone in chain.from_iterable(combinations(range(count), n) for n in range(count + 1)):
        axes = np.array(gone, np.int32)
        elements = float(np.prod([shape[i] for i in gone]))
        tolerance = 0 if cls is ReduceMax else 2e-6 * (elements if cls is Sum else 1)
        check_compiled(cls, [x, axes], (1,), atol=tolerance, keep_dims=len(gone) % 2 == 0)


@pytest.mark.parametrize("cls", [Mean, Sum, ReduceMax])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reductions_of_extremes_are_those_of_the_reference(cls: type[Op], axis: int) -> None:
    x = floats(9, 10, 37)
    x[0, 0, 0], x[1, 2, 1:], x[2:, 3, 4], x[4, :7, 5], x[5, 5, 5] = (
        np.nan,
        np.nan,
        np.nan,
        np.nan,
        np.inf,
    )
    x[6, 6, :] = -np.inf
    check_compiled(cls, [x, np.array(axis, np.int32)], (1,), atol=0 if cls is ReduceMax else 5e-5)


def test_long_sums_are_as_precise_as_those_of_doubles() -> None:
    x = np.random.default_rng(1).uniform(0, 1, (2, 300_001)).astype(np.float32)
    for axis in (0, 1):
        given = x if axis else np.ascontiguousarray(x.T)
        result = run_compiled(Sum, [given, np.array([axis], np.int32)], (1,))[0]
        np.testing.assert_allclose(result, x.sum(1, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("cls", [Mean, Sum, ReduceMax])
def test_reductions_are_those_of_litert(cls: type[Op]) -> None:
    operands = [floats(1, 8, 9, 35), np.array([1, 2], np.int32)]
    content = to_bytes(one_op(cls, operands, (1,)), "tflite")
    theirs = litert(content, operands[:1], "AUTO")[0]
    np.testing.assert_allclose(run_compiled(cls, operands, (1,))[0], theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cls", [Mean, Sum, ReduceMax])
def test_reductions_leave_computed_axes_to_the_reference(cls: type[Op]) -> None:
    assert declines_computed(cls, [floats(2, 3), np.array([1], np.int32)], [1], 1)
