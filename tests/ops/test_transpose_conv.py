"""TRANSPOSE_CONV against LiteRT."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import one_op, run_litert, run_native, run_reference

SIZES = (9, 10)
CASES = list(product(Padding, [(1, 1), (2, 1), (2, 3)], [(3, 2), (1, 1), (4, 5)]))


def check(
    sizes: tuple[int, ...],
    filter_shape: tuple[int, ...],
    shape: tuple[int, ...],
    constant: tuple[int, ...] = (0, 1, 3),
    **attributes: Any,
) -> None:
    """Random numbers of these shapes give what LiteRT gives, to 2e-6 of the largest result."""
    rng = np.random.default_rng(sum(shape) + sum(filter_shape))
    filter, x, bias = (
        rng.normal(size=s).astype(np.float32) for s in (filter_shape, shape, filter_shape[:1])
    )
    arrays = [np.array(sizes, np.int32), filter, x, bias]
    ours, theirs = (
        run(TransposeConv, arrays, constant, **attributes)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(("padding", "stride", "kernel"), CASES)
def test_transpose_conv_gives_what_litert_gives(
    padding: Padding, stride: tuple[int, int], kernel: tuple[int, int]
) -> None:
    valid = padding == Padding.VALID
    data = [
        -(-(n - k + 1) // s) if valid else -(-n // s)
        for n, k, s in zip(SIZES, kernel, stride, strict=True)
    ]
    check(
        (2, *SIZES, 4),
        (4, *kernel, 3),
        (2, *data, 3),
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
    )


NATIVE = [
    ((2, 9, 10, 4), (4, 3, 2, 3), (2, 5, 4, 3)),
    ((1, 7, 4, 17), (17, 4, 5, 2), (1, 4, 2, 2)),
    ((1, 12, 13, 1), (1, 3, 3, 1), (1, 4, 4, 1)),
    ((1, 5, 9, 3), (3, 1, 2, 5), (1, 3, 3, 5)),
]
"""Results, filters and data: also results larger or smaller than the data makes."""


@pytest.mark.parametrize(("sizes", "filter_shape", "shape"), NATIVE)
@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("stride", [(1, 1), (2, 3), (3, 2)])
def test_native_transpose_conv_equals_the_reference(
    sizes: tuple[int, ...],
    filter_shape: tuple[int, ...],
    shape: tuple[int, ...],
    padding: Padding,
    stride: tuple[int, int],
) -> None:
    rng = np.random.default_rng(0)
    filter, x, bias = (
        rng.normal(size=s).astype(np.float32) for s in (filter_shape, shape, filter_shape[:1])
    )
    arrays = [np.array(sizes, np.int32), filter, x, bias]
    options: dict[str, Any] = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "activation": ActivationFunctionType.RELU,
    }
    (want,) = run_reference(TransposeConv, arrays, (0, 1, 3), **options)
    got = run_native(one_op(TransposeConv, arrays, (0, 1, 3), **options), x)
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 * np.abs(want).max(), strict=True)


@pytest.mark.parametrize("sizes", [(1, 4, 5, 1), (1, 1, 2, 1), (1, 12, 13, 1), (1, 0, 3, 1)])
@pytest.mark.parametrize("padding", Padding)
def test_transpose_conv_cuts_or_fills_to_the_size_asked_for(
    sizes: tuple[int, ...], padding: Padding
) -> None:
    """LiteRT refuses sizes whose convolution has another shape than the data; ONE writes them."""
    rng = np.random.default_rng(0)
    filter, x = (rng.normal(size=(1, n, n, 1)).astype(np.float32) for n in (3, 4))
    arrays = [np.array(sizes, np.int32), filter, x]
    (y,) = run_reference(TransposeConv, arrays, (0, 1), padding=padding, stride_h=2, stride_w=2)
    top, left = (before_same(n, 3, 2) if padding == Padding.SAME else 0 for n in sizes[1:3])
    expected = np.zeros(sizes, np.float32)
    for h, w, i, j in np.ndindex(4, 4, 3, 3):
        row, column = 2 * h + i - top, 2 * w + j - left
        if 0 <= row < sizes[1] and 0 <= column < sizes[2]:
            expected[0, row, column, 0] += x[0, h, w, 0] * filter[0, i, j, 0]
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-6)


def before_same(size: int, kernel: int, stride: int) -> int:
    """Half of the padding that a convolution of the result needs, by TFLite's formula."""
    out = (size + stride - 1) // stride
    return max((out - 1) * stride + kernel - size, 0) // 2


def test_transpose_conv_takes_its_size_at_run_time() -> None:
    check((1, 6, 6, 2), (2, 3, 3, 1), (1, 3, 3, 1), constant=(1, 3), stride_h=2, stride_w=2)


@pytest.mark.parametrize("activation", ["RELU", "RELU6"])
def test_transpose_conv_applies_its_activation(activation: str) -> None:
    act = ActivationFunctionType[activation]
    check((1, 6, 6, 2), (2, 3, 3, 4), (1, 3, 3, 4), stride_h=2, stride_w=2, activation=act)


def test_transpose_conv_without_bias_gives_what_litert_gives() -> None:
    x, filter = np.ones((1, 2, 2, 1), np.float32), np.ones((1, 3, 3, 1), np.float32)
    arrays = [np.array([1, 4, 4, 1], np.int32), filter, x]
    ours, theirs = (
        run(TransposeConv, arrays, (0, 1), stride_h=2, stride_w=2)[0]
        for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_transpose_conv_keeps_unknown_dimensions() -> None:
    graph = Graph()
    sizes = graph.add_input("sizes", (4,))
    filter = graph.add_constant("filter", np.ones((2, 3, 3, 5), np.float32))
    x = graph.add_input("x", (None, 4, 4, 5))
    op = TransposeConv(sizes, filter, x, stride_h=1, stride_w=1)
    assert op.infer_shape() == (None, None, None, 2)
    graph.inputs.remove(sizes)
    sizes.make_constant(np.array([7, 5, 5, 2], np.int32))
    assert op.infer_shape() == (7, 5, 5, 2)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1, -1, 6, 2], r"input_sizes is \[1, -1, 6, 2\], extents are 0 or more"),
        ([2, 6, 6, 2], "batch: input_sizes has 2, out_backprop has 1"),
        ([1, 6, 6, 3], "output channels: input_sizes has 3, filter has 2"),
        ([6, 6, 2], "input_sizes has 3 entries, 4 are needed"),
    ],
)
@pytest.mark.parametrize("constant", [(0, 1), (1,)])
def test_transpose_conv_refuses_impossible_sizes(
    sizes: list[int], message: str, constant: tuple[int, ...]
) -> None:
    filter, x = np.ones((2, 3, 3, 1), np.float32), np.ones((1, 3, 3, 1), np.float32)
    arrays = [np.array(sizes, np.int32), filter, x]
    with pytest.raises(ShapeError, match=message):
        run_reference(TransposeConv, arrays, constant, stride_h=2, stride_w=2)


def test_transpose_conv_refuses_channels_that_differ() -> None:
    filter, x = np.ones((2, 3, 3, 4), np.float32), np.ones((1, 3, 3, 1), np.float32)
    with pytest.raises(ShapeError, match="input channels: filter has 4, out_backprop has 1"):
        one_op(TransposeConv, [np.array([1, 6, 6, 2], np.int32), filter, x], stride_h=2, stride_w=2)


def test_transpose_conv_refuses_a_stride_of_0() -> None:
    filter, x = np.ones((2, 3, 3, 1), np.float32), np.ones((1, 3, 3, 1), np.float32)
    with pytest.raises(ShapeError, match="stride is 0 and dilation 1, both must be at least 1"):
        one_op(TransposeConv, [np.array([1, 6, 6, 2], np.int32), filter, x], stride_h=2)
