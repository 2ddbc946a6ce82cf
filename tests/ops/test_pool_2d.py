"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D against LiteRT."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.pool_2d import AveragePool2D, L2Pool2D, MaxPool2D, Pool2D
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import one_op, run_litert, run_reference

BOTH = pytest.mark.parametrize("cls", [AveragePool2D, MaxPool2D, L2Pool2D])
CASES = list(product(Padding, [(1, 1), (2, 1), (3, 4)], [(1, 1), (2, 3), (5, 4)]))


def check(cls: type[Pool2D], shape: tuple[int, ...], **attributes: Any) -> None:
    """Random numbers give what LiteRT gives: the maximum exactly, the others to 1e-6."""
    x = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) * 5
    ours, theirs = (run(cls, [x], **attributes)[0] for run in (run_reference, run_litert))
    exact = cls is MaxPool2D
    np.testing.assert_allclose(
        ours, theirs, rtol=0, atol=0 if exact else 1e-6 * np.abs(theirs).max()
    )


@BOTH
@pytest.mark.parametrize(("padding", "stride", "kernel"), CASES)
def test_pool_2d_gives_what_litert_gives(
    cls: type[Pool2D], padding: Padding, stride: tuple[int, int], kernel: tuple[int, int]
) -> None:
    check(
        cls,
        (2, 9, 11, 3),
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=kernel[0],
        filter_width=kernel[1],
    )


@BOTH
@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_pool_2d_applies_its_activation(cls: type[Pool2D], activation: str) -> None:
    window: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    check(cls, (1, 5, 5, 8), activation=ActivationFunctionType[activation], **window)


@BOTH
def test_pool_2d_with_a_window_larger_than_the_image(cls: type[Pool2D]) -> None:
    check(cls, (1, 2, 3, 2), stride_h=2, stride_w=2, filter_height=7, filter_width=9)


@BOTH
def test_pool_2d_ignores_the_padding(cls: type[Pool2D]) -> None:
    x = np.full((1, 3, 3, 1), -7, np.float32)
    (y,) = run_reference(cls, [x], stride_h=1, stride_w=1, filter_height=3, filter_width=3)
    np.testing.assert_array_equal(y, abs(x) if cls is L2Pool2D else x, strict=True)


@BOTH
@pytest.mark.parametrize("shape", [(0, 4, 4, 2), (1, 4, 0, 2)])
def test_pool_2d_of_an_empty_image_is_empty(cls: type[Pool2D], shape: tuple[int, ...]) -> None:
    window: dict[str, Any] = {"stride_h": 2, "stride_w": 2, "filter_height": 3, "filter_width": 3}
    (y,) = run_reference(cls, [np.ones(shape, np.float32)], **window)
    assert y.shape == (shape[0], 2, -(-shape[2] // 2), 2)


@BOTH
def test_pool_2d_keeps_unknown_dimensions(cls: type[Pool2D]) -> None:
    x = Graph().add_input("x", (None, 8, None, 3))
    op = cls(x, stride_h=2, stride_w=2, filter_height=2, filter_width=2)
    assert op.infer_shape() == (None, 4, None, 3)


@BOTH
@pytest.mark.parametrize(
    ("shape", "attributes", "message"),
    [
        ((1, 4, 4, 1), {"filter_width": 0}, "the window's extent is 0, it must be at least 1"),
        ((1, 4, 4, 1), {"stride_w": 0}, "stride is 0 and dilation 1, both must be at least 1"),
        ((4, 4, 1), {}, r"value has shape \[4,4,1\], rank 4 is needed"),
        (
            (1, 4, 2, 1),
            {"filter_height": 3, "filter_width": 3, "padding": Padding.VALID},
            "a window of 3 with dilation 1 does not fit into 2",
        ),
    ],
)
def test_pool_2d_refuses_impossible_windows(
    cls: type[Pool2D], shape: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    window: dict[str, Any] = {"stride_w": 1, "stride_h": 1, "filter_height": 2, "filter_width": 2}
    with pytest.raises(ShapeError, match=message):
        one_op(cls, [np.zeros(shape, np.float32)], **window | attributes)
