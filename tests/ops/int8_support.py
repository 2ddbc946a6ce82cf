"""Random layers of quantized tensors, for tests of their kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.support import Affine

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
NUMPY: dict[TensorType, Any] = {INT8: np.int8, UINT8: np.uint8, INT16: np.int16}
ACTIVATIONS = [ActivationFunctionType(n) for n in range(4)]


class Layer(NamedTuple):
    """An operator, its operands (the input first), and what makes a model of it."""

    cls: type[Op]
    operands: list[Array | None]
    options: dict[str, Any]

    @property
    def x(self) -> Array:
        given = self.operands[0]
        assert given is not None
        return given


def integers(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Any integers of a type, a few of them its extremes."""
    limits = np.iinfo(dtype)
    array = rng.integers(limits.min, limits.max + 1, shape)
    extreme = rng.random(shape) < 0.1
    ends = np.where(rng.random(shape) < 0.5, limits.min, limits.max)
    return np.where(extreme, ends, array).astype(dtype)


def layer(
    cls: type[Op],
    shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    seed: int,
    dtype: TensorType = INT8,
    *,
    channels: bool = True,
    bias: Any = np.int32,
    weights_type: TensorType | None = None,
    weights_zero: int | None = None,
    **options: Any,
) -> Layer:
    """A layer of random numbers, scales and zero points; results seldom saturate.

    ``channels``: a scale for each output. ``bias`` is its element type, None for none.
    """
    rng = np.random.default_rng(seed)
    axis = 3 if cls is DepthwiseConv2D else 0
    outputs = weights_shape[axis]
    x = integers(rng, NUMPY[dtype], shape)
    weights = integers(rng, np.uint8 if dtype == UINT8 else np.int8, weights_shape)
    if weights_type == TensorType.INT4:
        weights = (weights.astype(np.int32) >> 4).astype(np.int8)
    channels = channels and dtype != UINT8
    scales = rng.uniform(0.002, 0.02, outputs if channels else 1).astype(np.float32)
    products = int(np.prod(weights_shape)) // outputs
    size = np.sqrt(products) * float(np.iinfo(NUMPY[dtype]).max) / 2
    spread = 1000 if dtype != INT16 else 100_000
    given = None if bias is None else rng.integers(-spread, spread, outputs).astype(bias)
    zero = 0 if dtype == INT16 else int(integers(rng, NUMPY[dtype], ()))
    if weights_zero is None:
        weights_zero = int(rng.integers(100, 150)) if dtype == UINT8 else 0
    result_zero = 0 if dtype == INT16 else int(rng.integers(-50, 50)) + 128 * (dtype == UINT8)
    input_scale = np.float32(rng.uniform(0.005, 0.05))
    result_scale = size * 64 * input_scale * scales.mean() / float(np.iinfo(NUMPY[dtype]).max)
    options["affine"] = (
        Affine(float(input_scale), zero),
        Affine(scales.tolist(), [weights_zero] * len(scales), axis, weights_type),
        Affine((input_scale * scales).tolist(), [0] * len(scales)),
    )
    options["results"] = [Affine(float(result_scale), result_zero)]
    return Layer(cls, [x, weights, given], options)


def convolution(
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: Padding = Padding.SAME,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> dict[str, Any]:
    """Attributes of a convolution; sizes are (height, width)."""
    return {
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "padding": padding,
        "activation": activation,
    }


SAMPLES: list[tuple[type[Op], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (Conv2D, (1, 6, 5, 3), (4, 3, 3, 3), convolution()),
    (Conv2D, (2, 9, 7, 4), (34, 3, 2, 4), convolution((2, 2), padding=Padding.VALID)),
    (Conv2D, (1, 12, 10, 6), (35, 3, 3, 6), convolution((1, 2), (2, 1))),
    (Conv2D, (1, 6, 6, 64), (33, 1, 1, 64), convolution()),
    (Conv2D, (1, 5, 6, 8), (12, 3, 3, 2), convolution()),
    (Conv2D, (1, 49, 10, 1), (64, 10, 4, 1), convolution((2, 2))),
    (Conv2D, (1, 3, 3, 5), (7, 5, 5, 5), convolution((3, 3))),
    (Conv2D, (1, 10, 4, 16), (16, 1, 1, 16), convolution((2, 2))),
    (DepthwiseConv2D, (1, 7, 5, 64), (1, 3, 3, 64), convolution()),
    (DepthwiseConv2D, (2, 8, 9, 8), (1, 3, 3, 8), convolution((2, 2))),
    (DepthwiseConv2D, (1, 6, 6, 37), (1, 3, 3, 37), convolution((1, 1), (2, 2))),
    (DepthwiseConv2D, (1, 9, 6, 4), (1, 5, 3, 12), convolution(padding=Padding.VALID)),
    (DepthwiseConv2D, (1, 12, 5, 1), (1, 4, 2, 8), convolution((2, 1))),
    (DepthwiseConv2D, (1, 4, 2, 256), (1, 3, 3, 256), convolution()),
    (FullyConnected, (1, 64), (12, 64), {}),
    (FullyConnected, (3, 640), (128, 640), {}),
    (FullyConnected, (2, 3, 7), (5, 7), {"keep_num_dims": True}),
    (FullyConnected, (4, 8), (61, 8), {}),
    (FullyConnected, (1, 1), (1, 1), {}),
]
"""Operator, shapes of input and weights, attributes. Tiles of pixels and outputs, for which kernels
are compiled, are few: of 10 pixels by 16 outputs, of 6 by 48 or 64, and of single pixels.
"""
