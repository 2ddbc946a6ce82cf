"""Compiled layers of quantized tensors: bit for bit the reference."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import Padding
from tests.native_support import built, check_compiled, declines
from tests.ops.int8_support import (
    ACTIVATIONS,
    INT8,
    SAMPLES,
    UINT8,
    Layer,
    convolution,
    integers,
    layer,
)
from tests.support import Affine, one_op, run_native, run_reference


def check(made: Layer) -> None:
    check_compiled(made.cls, made.operands, (1, 2), **made.options)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize(("dtype", "channels"), [(INT8, True), (UINT8, False)])
def test_compiled_layers_equal_the_reference(
    sample: tuple[type[Op], Any, Any, Any], dtype: TensorType, channels: bool
) -> None:
    cls, shape, weights, options = sample
    options = options | {"activation": ACTIVATIONS[sum(shape) % 4]}
    zero = 128 if dtype == UINT8 else 0
    check(layer(cls, shape, weights, 1, dtype, channels=channels, weights_zero=zero, **options))


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
def test_threads_share_large_layers(cls: type[Op]) -> None:
    weights = (1, 3, 3, 64) if cls is DepthwiseConv2D else (64, 3, 3, 64)
    made = layer(cls, (1, 60, 61, 64), weights, 1, **convolution())
    op = one_op(cls, made.operands, (1, 2), **made.options).graph.ops[0]
    step, _ = built(op, made.operands)
    assert step is not None
    assert step.split is not None
    assert [len(stage) for stage in step.split(3)] == [3, 3]
    check(made)


@pytest.mark.parametrize("zero", [0, 1, 127, 151, 255])
@pytest.mark.parametrize("sample", SAMPLES)
def test_unsigned_weights_that_no_signed_byte_holds_equal_the_reference(
    sample: tuple[type[Op], Any, Any, Any], zero: int
) -> None:
    """Weights of the first converters less their zero point are from -255 to 255."""
    cls, shape, weights, options = sample
    options = options | {"activation": ACTIVATIONS[zero % 4]}
    made = layer(cls, shape, weights, 2, UINT8, weights_zero=zero, **options)
    stored = made.operands[1]
    assert stored is not None
    stored.reshape(-1)[:1], stored.reshape(-1)[-1:] = 255, 0
    check(made)


@pytest.mark.parametrize("zero", [-128, -5, 3, 127])
def test_signed_weights_with_a_zero_point_equal_the_reference(zero: int) -> None:
    made = layer(FullyConnected, (5, 20), (7, 20), 2, INT8, channels=False, weights_zero=zero)
    stored = made.operands[1]
    assert stored is not None
    stored.reshape(-1)[:1], stored.reshape(-1)[-1:] = 127, -128
    check(made)


@pytest.mark.parametrize("share", ["first", "last", "all"])
@pytest.mark.parametrize(
    ("sample", "dtype"), [*product(SAMPLES, [INT8]), *product(SAMPLES[::2], [UINT8])]
)
def test_sums_that_count_a_step_or_more_equal_the_reference(
    sample: tuple[type[Op], Any, Any, Any], dtype: TensorType, share: str
) -> None:
    """Factors from 1 to 100: of all channels, so that most results saturate, or 3 of one, so that
    kernels of other channels have none.
    """
    cls, shape, weights, options = sample
    made = layer(cls, shape, weights, 5, dtype, channels=True, weights_zero=None, **options)
    of_x, of_weights, of_bias = made.options["affine"]
    scales = np.array(of_weights.scale)
    step = made.options["results"][0].scale / of_x.scale
    if share == "all":
        scales = np.geomspace(1.0, 100.0, len(scales)) * step
    else:
        scales[0 if share == "first" else -1] = 3 * step
    made.options["affine"] = (of_x, of_weights._replace(scale=scales.tolist()), of_bias)
    made.operands[0] = quiet(made.x, of_x.zero_point)
    check(made)


def quiet(x: Array, zero: int) -> Array:
    """Inputs most of which stand for 0, so that results are seen between those that saturate."""
    return np.where(np.random.default_rng(4).random(x.shape) < 0.05, x, x.dtype.type(zero))


SEEDS = (4, 5, 6, 7, 11, 12, 14, 18, 22, 25, 27, 43)
"""Those of the first whose layers take tiles that samples take as well, so that no kernel is made
for them alone.
"""


def random_layer(seed: int) -> Layer:
    """A layer of small random extents."""
    rng = np.random.default_rng(seed)
    kind = seed % 3
    bias = None if seed % 7 == 0 else np.int32
    if kind == 2:
        n, o = (int(k) for k in rng.integers(1, 200, 2))
        return layer(FullyConnected, (int(rng.integers(1, 6)), n), (o, n), seed, bias=bias)
    kernel = rng.integers(1, 5, 2).tolist()
    stride, dilation = rng.integers(1, 3, 2).tolist(), rng.integers(1, 3, 2).tolist()
    padding = Padding(int(rng.integers(0, 2)))
    size = (int(k) for k in rng.integers(9, 20, 2))
    channels = int(rng.choice([1, 2, 3, 4, 8, 13, 16, 32, 48, 64, 65, 128]))
    shape = (int(rng.integers(1, 3)), *size, channels)
    options = convolution((*stride,), (*dilation,), padding, ACTIVATIONS[seed % 4])
    outputs = channels if kind else int(rng.integers(1, 70))
    weights = (1, *kernel, outputs) if kind else (outputs, *kernel, channels)
    return layer(DepthwiseConv2D if kind else Conv2D, shape, weights, seed, bias=bias, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_layers_of_any_extents_equal_the_reference(seed: int) -> None:
    check(random_layer(seed))


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize(
    ("columns", "weights", "stride"),
    [
        (16, (16, 3, 3, 16), 1),
        (12, (16, 3, 3, 3), 1),
        (40, (9, 3, 5, 4), 2),
        (30, (16, 2, 8, 4), 3),
        (3, (15, 1, 2, 4), 7),  # fewer than share any
    ],
)
def test_neighbours_that_share_inputs_equal_the_reference(
    columns: int, weights: tuple[int, int, int, int], stride: int, dtype: TensorType
) -> None:
    options = convolution((2, stride), padding=Padding(columns % 4 // 2))
    shape = (2, 7, columns, weights[-1])
    zero = 128 if dtype == UINT8 else 0
    check(layer(Conv2D, shape, weights, 1, dtype, weights_zero=zero, **options))


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
def test_compiled_layers_saturate_like_the_reference(cls: type[Op]) -> None:
    """Results far beyond what bytes hold, and outputs that are too small to be seen."""
    weights = (1, 3, 3, 20) if cls is DepthwiseConv2D else (20, 3, 3, 20)
    made = layer(cls, (1, 9, 9, 20), weights, 3, **convolution())
    of_x, of_weights, of_bias = made.options["affine"]
    scales = np.geomspace(1e-12, 0.99, 20) / of_x.scale * made.options["results"][0].scale
    made.options["affine"] = (of_x, of_weights._replace(scale=scales.tolist()), of_bias)
    bias = np.linspace(-(2**29), 2**29, 20).astype(np.int32)
    bias[8:] //= 1000
    made.operands[2] = bias
    made.operands[0] = integers(np.random.default_rng(1), np.int8, (1, 9, 9, 20)) | np.int8(-128)
    check(made)


def test_compiled_layers_take_weights_of_4_bits() -> None:
    for cls, shape, weights, options in SAMPLES[1::5]:
        made = layer(cls, shape, weights, 3, weights_type=TensorType.INT4, **options)
        (want,) = run_reference(cls, made.operands, (1, 2), **made.options)
        model = one_op(cls, made.operands, (1, 2), **made.options)
        np.testing.assert_array_equal(run_native(model, made.x), want, strict=True)


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("largest", [-8, 7, 64, -64, 65])
@pytest.mark.parametrize("depth", [1, 2, 29, 64])
def test_small_weights_at_their_extremes_equal_the_reference(
    depth: int, largest: int, dtype: TensorType
) -> None:
    """Pairs of magnitudes up to 128 are added up as int16, whose limits they reach."""
    made = layer(Conv2D, (2, 7, 9, depth), (20, 3, 3, depth), 1, dtype, **convolution())
    zero, limits = made.options["affine"][1].zero_point[0], np.iinfo(made.x.dtype)
    stored = made.operands[1]
    assert stored is not None
    stored[...] = np.clip(zero + largest, np.iinfo(stored.dtype).min, 255)
    stored[1], stored[2] = zero - min(largest, 127), zero
    stored[3, ::2] = zero - min(largest, 127)
    made.x[0], made.x[1] = limits.max, limits.min
    made.x[1, :, ::2] = limits.max
    check(made)


@pytest.mark.parametrize(
    "affine",
    [
        {"affine": (Affine(0.5), Affine(0.5)), "results": [Affine(2.0**-24)]},
        {"affine": (Affine(0.5, 300), Affine(0.5)), "results": [Affine(0.9)]},
        {"affine": (Affine(0.5), Affine(0.5)), "results": [Affine(0.9, 300)]},
        {"affine": (None, Affine(0.5)), "results": [Affine(0.9)]},
    ],
)
def test_layers_beyond_the_compiled_kernels_are_left_to_the_reference(affine: Any) -> None:
    """Scaled sums that leave 32 bits, zero points that no byte holds, what is refused at last."""
    arrays = [np.ones((1, 3, 3, 4), np.int8), np.ones((2, 2, 2, 4), np.int8)]
    assert declines(Conv2D, arrays, (1,), **convolution(), **affine)
