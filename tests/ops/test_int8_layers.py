"""Convolutions and dense layers of quantized tensors: bit for bit LiteRT's reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import LucioleError, Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from tests.native_support import check_compiled, declines
from tests.ops.int8_support import (
    ACTIVATIONS,
    INT8,
    INT16,
    SAMPLES,
    UINT8,
    Layer,
    convolution,
    layer,
)
from tests.support import Affine, run_litert, run_reference


def check(made: Layer) -> None:
    """Our reference kernel gives exactly what LiteRT's gives, and that is not a constant."""
    (ours,) = run_reference(made.cls, made.operands, (1, 2), **made.options)
    (theirs,) = run_litert(made.cls, made.operands, (1, 2), **made.options)
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.size < 9 or len(np.unique(ours)) > 2


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("dtype", "channels"), [(INT8, True), (INT8, False), (UINT8, False)])
def test_layers_of_bytes_are_those_of_litert(
    sample: tuple[type[Op], Any, Any, Any], dtype: TensorType, channels: bool
) -> None:
    cls, shape, weights, options = sample
    activation = ACTIVATIONS[sum(shape) % 4]
    options = options | {"activation": activation}
    check(layer(cls, shape, weights, 1, dtype, channels=channels, **options))


@pytest.mark.parametrize("sample", SAMPLES[::2])
@pytest.mark.parametrize("channels", [True, False])
def test_layers_of_16_bits_are_those_of_litert(
    sample: tuple[type[Op], Any, Any, Any], channels: bool
) -> None:
    cls, shape, weights, options = sample
    check(layer(cls, shape, weights, 2, INT16, channels=channels, bias=np.int64, **options))
    if cls is not DepthwiseConv2D:
        options = options | {"quantized_bias_type": TensorType.INT32}
        check(layer(cls, shape, weights, 2, INT16, channels=channels, **options))


@pytest.mark.parametrize("sample", SAMPLES[1::4])
def test_layers_with_weights_of_4_bits_are_those_of_litert(
    sample: tuple[type[Op], Any, Any, Any],
) -> None:
    cls, shape, weights, options = sample
    check(layer(cls, shape, weights, 3, weights_type=TensorType.INT4, **options))


@pytest.mark.parametrize("dtype", [INT8, UINT8])
def test_dense_layers_without_bias_are_those_of_litert(dtype: TensorType) -> None:
    check(layer(FullyConnected, (4, 30), (20, 30), 4, dtype, bias=None))


def test_dense_layers_with_weights_of_another_zero_are_those_of_litert() -> None:
    made = layer(FullyConnected, (4, 30), (20, 30), 5, channels=False)
    x, weights, bias = made.options["affine"]
    made.options["affine"] = (x, weights._replace(zero_point=-9), bias)
    check(made)


@pytest.mark.parametrize("sample", SAMPLES[::2])
def test_outputs_whose_scale_is_0_are_those_of_litert(
    sample: tuple[type[Op], Any, Any, Any],
) -> None:
    """Their weights are 0, and their bias is: compiled and not."""
    cls, shape, weights, options = sample
    made = layer(cls, shape, weights, 6, **options)
    _, given, bias = made.options["affine"]
    given.scale[0] = given.scale[-1] = bias.scale[0] = bias.scale[-1] = 0.0
    check(made)
    check_compiled(cls, made.operands, (1, 2), **made.options)


@pytest.mark.parametrize("sample", SAMPLES[::8])
def test_layers_of_nothing_are_empty(sample: tuple[type[Op], Any, Any, Any]) -> None:
    cls, shape, weights, options = sample
    made = layer(cls, (0, *shape[1:]), weights, 1, **options)
    (y,) = run_reference(cls, made.operands, (1, 2), **made.options)
    assert y.size == 0
    assert declines(cls, made.operands, (1, 2), **made.options)


ONE = Affine(0.5)


@pytest.mark.parametrize(
    ("affine", "result", "message"),
    [
        ((None, ONE), ONE, "the input has no scale"),
        ((ONE, None), ONE, "the weights tensor has no scale"),
        ((ONE, ONE), None, "the result has no scale"),
        ((Affine([0.5] * 4, 0, 3), ONE), ONE, "the input has 4 scales; one is needed"),
        (
            (ONE, Affine([0.5] * 4, 0, 3)),
            ONE,
            "the weights tensor has its scales along axis 3, not 0",
        ),
        (
            (ONE, Affine([0.5] * 3)),
            ONE,
            r"the weights tensor .* has 3 scales along axis 0; 1 or 2 fit",
        ),
        ((ONE, Affine(0.5, 3)), ONE, r"the weights tensor has zero points \[3\]; 0 is needed"),
        ((ONE, ONE), Affine(0.0), "the result has scales 0.0 to 0.0; they must be positive"),
        ((Affine(3e38), Affine(3e38)), Affine(1e-30), "scales make a factor of .*; up to"),
    ],
)
def test_convolution_refuses_scales_that_do_not_fit(
    affine: tuple[Affine | None, ...], result: Affine | None, message: str
) -> None:
    arrays = [np.ones((1, 3, 3, 4), np.int8), np.ones((2, 2, 2, 4), np.int8)]
    with pytest.raises(LucioleError, match=f"Conv2D 'y0': {message}"):
        run_reference(Conv2D, arrays, (1,), affine=affine, results=[result], **convolution())


def test_layers_of_16_bits_refuse_zero_points() -> None:
    made = layer(FullyConnected, (4, 30), (20, 30), 4, INT16, bias=None)
    made.options["results"] = [Affine(1.0, 3)]
    with pytest.raises(LucioleError, match="zero points 0 and 3; both must be 0"):
        run_reference(made.cls, made.operands, (1, 2), **made.options)
