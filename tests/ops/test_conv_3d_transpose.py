"""CONV_3D_TRANSPOSE against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, LucioleError, ShapeError, TensorType
from luciole.ir.analysis.figures import macs
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose
from luciole.ir.rules import window
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import one_op, run_litert, run_reference

RNG = np.random.default_rng(5)
ONE: dict[str, Any] = {"stride_d": 1, "stride_h": 1, "stride_w": 1}
OUTPUT = (6, 7, 8)


def operands(sizes: tuple[int, ...], *shapes: tuple[int, ...]) -> list[Any]:
    return [np.array(sizes, np.int32), *(RNG.normal(size=s).astype(np.float32) for s in shapes)]


def check(given: list[Any], constant: tuple[int, ...], **attributes: Any) -> None:
    ours, theirs = (
        run(Conv3DTranspose, given, constant, **attributes)[0]
        for run in (run_reference, run_litert)
    )
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
    steps = zip(OUTPUT, kernel, stride, dilation, strict=True)
    inner = [window(*step, padding) or 0 for step in steps]
    given = operands((2, *OUTPUT, 5), (*kernel, 5, 3), (2, *inner, 3), (5,))
    attributes: dict[str, Any] = {
        **dict(zip(("stride_d", "stride_h", "stride_w"), stride, strict=True)),
        **dict(zip((f"dilation_{a}_factor" for a in "dhw"), dilation, strict=True)),
    }
    check(given, (0,), padding=padding, **attributes)


@pytest.mark.parametrize("constant", [(0,), ()])
def test_the_shape_may_be_computed_and_the_bias_absent(constant: tuple[int, ...]) -> None:
    given = operands((1, 3, 4, 5, 3), (2, 2, 2, 3, 2), (1, 3, 4, 5, 2))
    check(given, constant, activation=ActivationFunctionType.RELU, **ONE)


def test_work_is_counted_by_what_the_input_meets() -> None:
    given = operands((1, 5, 7, 9, 3), (2, 2, 2, 3, 2), (1, 3, 4, 5, 2))
    model = one_op(Conv3DTranspose, given, (0, 1), stride_d=2, stride_h=2, stride_w=2)
    assert macs(model.graph.ops[0]) == (3 * 4 * 5 * 2) * (2 * 2 * 2 * 3)


def test_conv_3d_transpose_keeps_unknown_dimensions() -> None:
    graph = Graph()
    sizes = graph.add_input("sizes", (5,))
    sizes.dtype = TensorType.INT32
    weights, x = graph.add_input("w", (3, 3, 3, 5, 4)), graph.add_input("x", (None, 2, None, 2, 4))
    op = Conv3DTranspose(sizes, weights, x, **ONE)
    assert op.infer_shape() == (None, None, None, None, 5)


@pytest.mark.parametrize("constant", [(0,), ()])
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2, 3, 4, 5, 3), "batch: output_shape has 2, input has 1"),
        ((1, 3, 4, 5, 2), "output channels: output_shape has 2, filter has 3"),
        ((1, 3, 4, 6, 3), "axis 3: output_shape has 6, input has 5"),
        ((1, -3, 4, 5, 3), r"output_shape is \[1, -3, 4, 5, 3\], nothing below 0 is possible"),
        ((1, 3, 4, 3), "output_shape has 4 entries, 5 are needed"),
    ],
)
def test_conv_3d_transpose_refuses_shapes_that_do_not_fit(
    constant: tuple[int, ...], sizes: tuple[int, ...], message: str
) -> None:
    given = operands(sizes, (2, 2, 2, 3, 2), (1, 3, 4, 5, 2))
    with pytest.raises(ShapeError, match=message):
        run_reference(Conv3DTranspose, given, constant, **ONE)


def test_conv_3d_transpose_refuses_a_computed_shape_that_takes_too_much_memory() -> None:
    large = 1 << 12
    given = operands((1, large, large, large, 1), (1, 1, 1, 1, 1), (1, 1, 1, 1, 1))
    strides: dict[str, Any] = dict.fromkeys(ONE, large)
    with pytest.raises(LucioleError, match="are allowed where the shape is computed"):
        run_reference(Conv3DTranspose, given, **strides)


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (((1, 1, 1, 5, 4), (1, 2, 2, 2, 3)), {}, "input channels: filter has 4, input has 3"),
        (((1, 1, 1, 5, 3), (1, 2, 2, 2, 3), (4,)), {}, "output channels: bias has 4, filter has 5"),
        (((1, 1, 1, 5, 3), (1, 2, 2, 2, 3)), {"stride_d": 0}, "stride is 0 and dilation 1"),
    ],
)
def test_conv_3d_transpose_refuses_giventhat_do_not_fit(
    shapes: tuple[tuple[int, ...], ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Conv3DTranspose, operands((1, 2, 2, 2, 5), *shapes), (0,), **ONE | attributes)
