"""CONV_3D against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError
from luciole.ir.ops.conv_3d import Conv3D
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import one_op, run_litert, run_reference

RNG = np.random.default_rng(5)
ONE: dict[str, Any] = {"stride_d": 1, "stride_h": 1, "stride_w": 1}


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [RNG.normal(size=s).astype(np.float32) for s in shapes]


def check(*shapes: tuple[int, ...], **attributes: Any) -> None:
    given = arrays(*shapes)
    ours, theirs = (run(Conv3D, given, **attributes)[0] for run in (run_reference, run_litert))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * np.abs(theirs).max(initial=1))


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("stride", [(1, 1, 1), (2, 3, 1), (4, 1, 5)])
@pytest.mark.parametrize("dilation", [(1, 1, 1), (2, 1, 2)])
@pytest.mark.parametrize("kernel", [(1, 1, 1), (3, 2, 3)])
def test_windows_are_those_of_litert(
    padding: Padding,
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    kernel: tuple[int, ...],
) -> None:
    check(
        *((2, 6, 7, 8, 3), (*kernel, 3, 5), (5,)),
        **dict(zip(("stride_d", "stride_h", "stride_w"), stride, strict=True)),
        **dict(zip((f"dilation_{a}_factor" for a in "dhw"), dilation, strict=True)),
        padding=padding,
    )


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_conv_3d_applies_its_activation(activation: str) -> None:
    check(*((1, 3, 4, 5, 2), (2, 2, 2, 2, 3)), activation=ActivationFunctionType[activation], **ONE)


def test_windows_may_be_larger_than_the_image() -> None:
    check(*((1, 2, 3, 1, 2), (5, 5, 4, 2, 3), (3,)), **ONE)


@pytest.mark.parametrize(
    ("shape", "filter"),
    [((0, 2, 2, 2, 1), (1, 1, 1, 1, 1)), ((1, 2, 2, 2, 0), (1 << 16, 1, 1, 0, 3))],
)
def test_nothing_is_a_sum_of_nothing(shape: tuple[int, ...], filter: tuple[int, ...]) -> None:
    x, weights = np.ones(shape, np.float32), np.ones(filter, np.float32)
    (y,) = run_reference(Conv3D, [x, weights], **ONE)
    np.testing.assert_array_equal(y, np.zeros((*shape[:4], filter[4]), np.float32))


def test_conv_3d_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, weights = graph.add_input("x", (None, 6, None, 8, 3)), graph.add_input("w", (3, 3, 3, 3, 5))
    assert Conv3D(x, weights, **ONE).infer_shape() == (None, 6, None, 8, 5)


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (((1, 2, 2, 2, 3), (1, 1, 1, 4, 5)), {}, "input channels: filter has 4, input has 3"),
        (((1, 2, 2, 3), (1, 1, 1, 3, 5)), {}, r"input has shape \[1,2,2,3\], rank 5 is needed"),
        (((1, 2, 2, 2, 3), (1, 1, 1, 3, 5), (4,)), {}, "output channels: bias has 4, filter has 5"),
        (((1, 2, 2, 2, 3), (1, 1, 1, 3, 5)), {"stride_w": 0}, "stride is 0 and dilation 1"),
        (
            ((1, 2, 2, 2, 3), (3, 1, 1, 3, 5)),
            {"padding": Padding.VALID},
            "a window of 3 with dilation 1 does not fit into 2",
        ),
    ],
)
def test_conv_3d_refuses_what_does_not_fit(
    shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(Conv3D, arrays(*shapes), **ONE | attributes)
