"""CONV_2D against LiteRT."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, ShapeError, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.kernels.core import evaluation
from luciole.schema.enums import ActivationFunctionType, Padding
from luciole.schema.tables import QuantizationParameters
from tests.support import litert, one_op, run_litert, run_native, run_reference

CASES = list(product(Padding, [(1, 1), (2, 1), (3, 2)], [(1, 1), (2, 3)]))


def options(padding: Padding, stride: tuple[int, int], dilation: tuple[int, int]) -> dict[str, Any]:
    return {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
    }


def check(shape: tuple[int, ...], filter_shape: tuple[int, ...], **attributes: Any) -> None:
    """Random numbers of these shapes give what LiteRT gives, to 2e-6 of the largest result."""
    rng = np.random.default_rng(sum(shape) + sum(filter_shape))
    arrays = [
        rng.normal(size=s).astype(np.float32) for s in (shape, filter_shape, filter_shape[:1])
    ]
    ours, theirs = (
        run(Conv2D, arrays, (1, 2), **attributes)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(("padding", "stride", "dilation"), CASES)
def test_conv_2d_gives_what_litert_gives(
    padding: Padding, stride: tuple[int, int], dilation: tuple[int, int]
) -> None:
    check((2, 9, 11, 3), (5, 3, 2, 3), **options(padding, stride, dilation))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_conv_2d_with_groups_gives_what_litert_gives(depth: int) -> None:
    check((1, 6, 5, 6), (12, 3, 3, depth), stride_h=1, stride_w=2)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (4, 1)])
def test_conv_2d_with_a_filter_larger_than_the_image(size: tuple[int, int]) -> None:
    check((1, *size, 2), (3, 5, 5, 2), stride_h=2, stride_w=2)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_conv_2d_applies_its_activation(activation: str) -> None:
    check(
        (1, 5, 5, 8),
        (4, 3, 3, 8),
        stride_h=1,
        stride_w=1,
        activation=ActivationFunctionType[activation],
    )


NATIVE = [
    ((2, 9, 11, 3), (5, 3, 2, 3)),
    ((1, 8, 8, 7), (64, 3, 3, 7)),
    ((1, 12, 5, 16), (33, 1, 1, 16)),
    ((3, 1, 1, 40), (120, 1, 1, 40)),
    ((1, 1, 7, 2), (3, 5, 5, 2)),
    ((1, 6, 5, 6), (12, 3, 3, 2)),
    ((1, 5, 5, 4), (40, 2, 2, 1)),
]
"""Inputs and filters: odd sizes, several images, a filter larger than the image, groups."""


def check_native(arrays: list[Array], **attributes: Any) -> None:
    """The compiled kernel gives what the reference gives, to 5e-6 of the largest result."""
    model = one_op(Conv2D, arrays, (1, 2), **attributes)
    (want,) = run_reference(Conv2D, arrays, (1, 2), **attributes)
    got = run_native(model, arrays[0])
    finite = np.abs(want[np.isfinite(want)]).max(initial=0)
    np.testing.assert_allclose(got, want, rtol=0, atol=5e-6 * finite, strict=True)


def native_operands(shape: tuple[int, ...], filter_shape: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(sum(shape) + sum(filter_shape))
    shapes = (shape, filter_shape, filter_shape[:1])
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize(("shape", "filter_shape"), NATIVE)
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_native_conv_2d_equals_the_reference(
    shape: tuple[int, ...], filter_shape: tuple[int, ...], stride: tuple[int, int]
) -> None:
    check_native(
        native_operands(shape, filter_shape), **options(Padding.SAME, stride, dilation=(1, 1))
    )


@pytest.mark.parametrize(("padding", "stride", "dilation"), CASES)
def test_native_conv_2d_with_every_window(
    padding: Padding, stride: tuple[int, int], dilation: tuple[int, int]
) -> None:
    arrays = native_operands((2, 9, 11, 3), (5, 3, 2, 3))
    check_native(arrays, **options(padding, stride, dilation))


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1", "TANH"])
def test_native_conv_2d_spreads_what_is_not_finite(activation: str) -> None:
    arrays = native_operands((1, 7, 7, 3), (5, 3, 3, 3))
    arrays[0][0, 1, 1, 0] = np.nan
    arrays[0][0, 5, 2, 1] = np.inf
    arrays[0][0, 4, 6, 2] = -np.inf
    arrays[0][0, 6, 6] = 1e-42  # not normal
    check_native(arrays, stride_h=1, stride_w=1, activation=ActivationFunctionType[activation])


def test_native_conv_2d_without_bias() -> None:
    arrays = native_operands((1, 4, 4, 2), (3, 2, 2, 2))[:2]
    check_native(arrays, stride_h=1, stride_w=1)


def test_conv_2d_leaves_filters_that_change_to_the_reference() -> None:
    arrays = native_operands((1, 4, 4, 2), (3, 2, 2, 2))
    model = one_op(Conv2D, arrays, (2,), stride_h=1, stride_w=1)
    (want,) = run_reference(Conv2D, arrays, (2,), stride_h=1, stride_w=1)
    given = {v.name: arrays[int(v.name[1:])] for v in model.graph.inputs}
    (got,) = Interpreter(model).run(given).values()
    np.testing.assert_array_equal(got, want)


def test_conv_2d_without_bias_and_with_a_bias_of_zeros_are_equal() -> None:
    x, filter = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 2, 2, 2), np.float32)
    zeros = np.zeros((1, 1, 1, 3), np.float32)
    without, with_zeros = (
        run_reference(Conv2D, [x, filter, b], stride_h=1, stride_w=1)[0] for b in (None, zeros)
    )
    np.testing.assert_array_equal(without, with_zeros, strict=True)


@pytest.mark.parametrize("shape", [(0, 4, 4, 2), (1, 0, 4, 2)])
def test_conv_2d_of_an_empty_image_is_empty(shape: tuple[int, ...]) -> None:
    filter = np.ones((3, 2, 2, 2), np.float32)
    (y,) = run_reference(Conv2D, [np.ones(shape, np.float32), filter], stride_h=1, stride_w=1)
    assert y.shape == (*shape[:3], 3)


def test_conv_2d_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x = graph.add_input("x", (None, None, 8, 3))
    filter = graph.add_constant("filter", np.ones((4, 3, 3, 3), np.float32))
    op = Conv2D(x, filter, stride_h=2, stride_w=2, padding=Padding.VALID)
    assert op.infer_shape() == (None, None, 3, 4)


@pytest.mark.parametrize(
    ("shape", "filter", "message"),
    [
        ((1, 4, 4, 3), (2, 3, 3, 4), "filter has 4 input channels, input has 3"),
        ((1, 4, 4, 0), (2, 3, 3, 0), "filter has 0 input channels, input has 0"),
        ((1, 4, 4, 4), (3, 3, 3, 2), "filter has 3 output channels, not a multiple of 2 groups"),
        ((4, 4, 3), (2, 3, 3, 3), r"input has shape \[4,4,3\], rank 4 is needed"),
        ((1, 4, 4, 3), (3, 3, 3), r"filter has shape \[3,3,3\], rank 4 is needed"),
        ((1, 4, 4, 3), (2, 0, 3, 3), "the window's extent is 0, it must be at least 1"),
        ((1, 2, 2, 3), (2, 3, 3, 3), "a window of 3 with dilation 1 does not fit into 2"),
    ],
)
def test_conv_2d_refuses_shapes_that_do_not_fit(
    shape: tuple[int, ...], filter: tuple[int, ...], message: str
) -> None:
    arrays = [np.zeros(shape, np.float32), np.zeros(filter, np.float32)]
    with pytest.raises(ShapeError, match=message):
        one_op(Conv2D, arrays, stride_h=1, stride_w=1, padding=Padding.VALID)


def test_conv_2d_refuses_a_bias_of_another_length() -> None:
    arrays = [np.zeros(s, np.float32) for s in ((1, 4, 4, 3), (2, 3, 3, 3), (3,))]
    with pytest.raises(ShapeError, match="output channels: bias has 3, filter has 2"):
        one_op(Conv2D, arrays, stride_h=1, stride_w=1)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"stride_h": 0, "stride_w": 1}, "stride is 0 and dilation 1, both must be at least 1"),
        ({"stride_h": 1, "stride_w": 1, "dilation_w_factor": 0}, "stride is 1 and dilation 0"),
    ],
)
def test_conv_2d_refuses_windows_that_do_not_move(attributes: dict[str, Any], message: str) -> None:
    arrays = [np.zeros(s, np.float32) for s in ((1, 4, 4, 3), (2, 3, 3, 3))]
    with pytest.raises(ShapeError, match=message):
        one_op(Conv2D, arrays, **attributes)


def test_conv_2d_infers_the_input_s_type() -> None:
    op = one_op(Conv2D, [np.zeros((1, 2, 2, 1), np.int8)] * 2, stride_h=1, stride_w=1).graph.ops[0]
    assert op.results[0].dtype == TensorType.INT8


def hybrid_model(filter: Array, scale: float, bias: Array) -> Model:
    """A convolution with int8 weights under float inputs: the converter's dynamic range."""
    x = np.zeros((2, 6, 5, 3), np.float32)
    model = one_op(Conv2D, [x, filter, bias], constant=(1, 2), stride_h=1, stride_w=2)
    weights = model.graph.ops[0].operands[1]
    assert weights is not None
    weights.quantization = QuantizationParameters(
        scale=np.array([scale], np.float32), zero_point=np.zeros(1, np.int64)
    )
    model.graph.ops[0].version = 2
    return model


@pytest.mark.parametrize("seed", range(5))
def test_hybrid_equals_litert(seed: int) -> None:
    generator = np.random.default_rng(seed)
    filter = generator.integers(-127, 128, (4, 3, 2, 3)).astype(np.int8)
    model = hybrid_model(filter, 0.013, generator.normal(size=4).astype(np.float32))
    x = (generator.normal(size=(2, 6, 5, 3)) * 10**seed).astype(np.float32)
    x[1] *= 0 if seed == 4 else 1
    (want,) = litert(to_bytes(model, "tflite"), [x])
    (got,) = Interpreter(model).run(x).values()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


HYBRID = [
    ((2, 6, 5, 3), (60, 3, 2, 3)),
    ((1, 12, 5, 16), (61, 1, 1, 16)),
    ((3, 9, 11, 1), (64, 5, 4, 1)),
    ((1, 6, 7, 6), (192, 3, 3, 2)),
]
"""Inputs and filters. Outputs fill four vectors: kernels are compiled for the tiles of that."""


@pytest.mark.parametrize(("shape", "filter_shape"), HYBRID)
@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize(("stride", "dilation"), [((1, 1), (1, 1)), ((2, 3), (1, 2))])
def test_native_hybrid_equals_the_reference(
    shape: tuple[int, ...],
    filter_shape: tuple[int, ...],
    padding: Padding,
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> None:
    attributes = options(padding, stride, dilation)
    x = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    check_hybrid(x, filter_shape, activation=ActivationFunctionType.RELU, **attributes)


@pytest.mark.parametrize("value", [0, 1e-42, 3e38, np.inf, np.nan])
@pytest.mark.parametrize("rest", [0, 1])
def test_native_hybrid_of_extremes(value: float, rest: float) -> None:
    """Each image is on its own: what is not finite makes all of it NaN."""
    x = np.full((2, 6, 5, 3), rest, np.float32)
    x[0, 2, 3, 1] = value
    check_hybrid(x, (60, 3, 2, 3), stride_h=1, stride_w=1)


def hybrid_of(filter: Array, x: Array, bias: Array | None = None, **attributes: Any) -> Model:
    """A convolution with int8 weights of one scale."""
    arrays = [x, filter] if bias is None else [x, filter, bias]
    options = {"stride_h": 1, "stride_w": 1, **attributes}
    model = one_op(Conv2D, arrays, (1, 2), **options)
    weights = model.graph.ops[0].operands[1]
    assert weights is not None
    weights.quantization = QuantizationParameters(
        scale=np.array([0.013], np.float32), zero_point=np.zeros(1, np.int64)
    )
    return model


def check_hybrid(x: Array, filter_shape: tuple[int, ...], **attributes: Any) -> None:
    """The compiled kernel gives exactly what the reference gives, with a bias and without."""
    rng = np.random.default_rng(1)
    filter = rng.integers(-127, 128, filter_shape).astype(np.int8)
    for bias in (rng.normal(size=filter_shape[0]).astype(np.float32), None):
        model = hybrid_of(filter, x, bias, **attributes)
        op = model.graph.ops[0]
        (want,) = evaluation.computed(op, [x, filter, bias])
        np.testing.assert_array_equal(run_native(model, x), want, strict=True)


def test_native_hybrid_with_tanh() -> None:
    """The compiled hyperbolic tangent rounds otherwise than NumPy's."""
    x = np.random.default_rng(2).normal(size=(1, 6, 5, 3)).astype(np.float32) / 4
    filter = np.random.default_rng(3).integers(-127, 128, (60, 3, 2, 3)).astype(np.int8)
    tanh = ActivationFunctionType.TANH
    model = hybrid_of(filter, x, activation=tanh)
    op = model.graph.ops[0]
    (want,) = evaluation.computed(op, [x, filter])
    np.testing.assert_allclose(run_native(model, x), want, rtol=0, atol=1e-6)
