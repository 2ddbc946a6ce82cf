"""DEPTHWISE_CONV_2D against LiteRT."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import one_op, run_litert, run_native, run_reference

CASES = list(product(Padding, [(1, 1), (2, 1), (3, 2)], [(1, 1), (2, 3)], [1, 3]))


def check(shape: tuple[int, ...], filter_shape: tuple[int, ...], **attributes: Any) -> None:
    """Random numbers of these shapes give what LiteRT gives, to 2e-6 of the largest result."""
    rng = np.random.default_rng(sum(shape) + sum(filter_shape))
    shapes = (shape, filter_shape, filter_shape[3:])
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    attributes.setdefault("depth_multiplier", filter_shape[3] // shape[3])
    ours, theirs = (
        run(DepthwiseConv2D, arrays, (1, 2), **attributes)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(("padding", "stride", "dilation", "multiplier"), CASES)
def test_depthwise_conv_2d_gives_what_litert_gives(
    padding: Padding, stride: tuple[int, int], dilation: tuple[int, int], multiplier: int
) -> None:
    check(
        (2, 9, 11, 5),
        (1, 3, 2, 5 * multiplier),
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
    )


def test_depthwise_conv_2d_takes_the_multiplier_from_the_shapes() -> None:
    check((1, 4, 5, 2), (1, 3, 3, 4), stride_h=1, stride_w=1, depth_multiplier=0)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_depthwise_conv_2d_applies_its_activation(activation: str) -> None:
    act = ActivationFunctionType[activation]
    check((1, 5, 5, 8), (1, 3, 3, 8), stride_h=1, stride_w=1, activation=act)


def test_depthwise_conv_2d_of_a_single_pixel() -> None:
    check((3, 1, 1, 2), (1, 7, 5, 2), stride_h=1, stride_w=1)


def test_depthwise_conv_2d_of_an_empty_batch_is_empty() -> None:
    arrays = [np.ones(s, np.float32) for s in ((0, 4, 4, 2), (1, 2, 2, 6))]
    (y,) = run_reference(DepthwiseConv2D, arrays, stride_h=1, stride_w=1)
    assert y.shape == (0, 4, 4, 6)


def test_depthwise_conv_2d_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x = graph.add_input("x", (None, 7, None, None))
    filter = graph.add_constant("filter", np.ones((1, 3, 3, 6), np.float32))
    op = DepthwiseConv2D(x, filter, stride_h=2, stride_w=2, depth_multiplier=2)
    assert op.infer_shape() == (None, 4, None, 6)
    assert list(op.verify()) == []


NATIVE = [
    ((1, 9, 7, 8), 1),
    ((2, 6, 6, 64), 1),
    ((1, 5, 5, 40), 1),
    ((1, 4, 9, 5), 1),
    ((1, 3, 3, 2), 1),
    ((2, 5, 4, 3), 7),
    ((1, 5, 4, 1), 4),
]
"""Inputs and filters for each channel: few channels, whole vectors of 16, some left over."""


@pytest.mark.parametrize(("shape", "multiplier"), NATIVE)
@pytest.mark.parametrize(("stride", "dilation"), [((1, 1), (1, 1)), ((2, 1), (1, 2))])
def test_native_depthwise_conv_2d_equals_the_reference(
    shape: tuple[int, ...], multiplier: int, stride: tuple[int, int], dilation: tuple[int, int]
) -> None:
    check_native(
        shape,
        (1, 3, 3, shape[3] * multiplier),
        depth_multiplier=multiplier,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
        activation=ActivationFunctionType.RELU6,
    )


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("channels", [4, 20])
def test_native_depthwise_conv_2d_with_a_filter_of_another_size(
    padding: Padding, channels: int
) -> None:
    shapes = ((1, 6, 9, channels), (1, 2, 5, channels))
    tanh = ActivationFunctionType.TANH
    check_native(*shapes, padding=padding, stride_h=2, stride_w=2, activation=tanh)


def check_native(shape: tuple[int, ...], filter_shape: tuple[int, ...], **attributes: Any) -> None:
    """The compiled kernel gives what the reference gives, to 5e-6 of the largest result, with NaN
    and infinities where it has them.
    """
    rng = np.random.default_rng(sum(shape) + sum(filter_shape))
    shapes = (shape, filter_shape, filter_shape[3:])
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    arrays[0][0, 1, 2, 0] = np.nan
    arrays[0][0, 2, 1, -1] = -np.inf
    (want,) = run_reference(DepthwiseConv2D, arrays, (1, 2), **attributes)
    got = run_native(one_op(DepthwiseConv2D, arrays, (1, 2), **attributes), arrays[0])
    finite = np.abs(want[np.isfinite(want)]).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 * finite, strict=True)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ((1, 3, 3, 4), "filter has 4 output channels, not a multiple of the input's 3"),
        ((2, 3, 3, 3), "first axis: filter has 2, a depthwise filter has 1"),
        ((3, 3, 3), r"filter has shape \[3,3,3\], rank 4 is needed"),
    ],
)
def test_depthwise_conv_2d_refuses_filters_that_do_not_fit(
    filter: tuple[int, ...], message: str
) -> None:
    arrays = [np.zeros((1, 4, 4, 3), np.float32), np.zeros(filter, np.float32)]
    with pytest.raises(ShapeError, match=message):
        one_op(DepthwiseConv2D, arrays, stride_h=1, stride_w=1)


def test_depthwise_conv_2d_refuses_a_bias_of_another_length() -> None:
    arrays = [np.zeros(s, np.float32) for s in ((1, 4, 4, 3), (1, 3, 3, 3), (1,))]
    with pytest.raises(ShapeError, match="output channels: bias has 1, filter has 3"):
        one_op(DepthwiseConv2D, arrays, stride_h=1, stride_w=1)


def test_depthwise_conv_2d_refuses_a_wrong_depth_multiplier() -> None:
    arrays = [np.zeros(s, np.float32) for s in ((1, 4, 4, 3), (1, 3, 3, 6))]
    model = one_op(DepthwiseConv2D, arrays, stride_h=1, stride_w=1, depth_multiplier=3)
    assert list(model.graph.ops[0].verify()) == [
        "depth_multiplier is 3, filter has 6 output channels and input 3"
    ]
