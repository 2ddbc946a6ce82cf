"""Compiled layers of 16 bit integers: bit for bit the reference, and LiteRT on large sums."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.kernels.layers.int16.layer import MOST_WEIGHTS
from tests.native_support import check_compiled, declines
from tests.ops.int8_support import ACTIVATIONS, INT16, SAMPLES, Layer, convolution, layer
from tests.support import Affine, one_op, run_litert, run_native, run_reference

BIASES = [np.int64, np.int32, None]
LOW, HIGH = -(2**15), 2**15 - 1


def check(made: Layer) -> None:
    constant = tuple(k for k in (1, 2) if made.operands[k] is not None)
    check_compiled(made.cls, made.operands, constant, **made.options)


@pytest.mark.parametrize(
    ("sample", "bias"),
    [
        *product(SAMPLES, [np.int64, None]),
        *product([*SAMPLES[1:4], SAMPLES[10], *SAMPLES[14:]], [np.int32]),  # of any tiles
    ],
)
def test_compiled_layers_equal_the_reference(
    sample: tuple[type[Op], Any, Any, Any], bias: Any
) -> None:
    cls, shape, weights, options = sample
    options = options | {"activation": ACTIVATIONS[sum(shape) % 4]}
    check(layer(cls, shape, weights, 1, INT16, bias=bias, **options))


@pytest.mark.parametrize("channels", [2, 3, 8, 24, 32, 40, 65, 128])
@pytest.mark.parametrize(
    "options", [convolution(), convolution((2, 2)), convolution((1, 1), (2, 1))]
)
def test_depthwise_layers_of_any_channels_equal_the_reference(
    channels: int, options: dict[str, Any]
) -> None:
    """Rows of 32 channels, of neighbours and of pieces; 9 and 6 taps."""
    for kernel in ((3, 3), (3, 2)):
        shape, weights = (2, 7, 5, channels), (1, *kernel, channels)
        check(layer(DepthwiseConv2D, shape, weights, 1, INT16, bias=np.int64, **options))


def alike(cls: type[Op], x: Array, weights: Array, bias: Any, step: float = 2.0**15) -> Layer:
    """A layer whose results are sums divided by ``step``."""
    outputs = weights.shape[3 if cls is DepthwiseConv2D else 0]
    options = {} if cls is FullyConnected else convolution()
    given = [Affine(1.0), Affine([1.0] * outputs, [0] * outputs, 3 * (cls is DepthwiseConv2D))]
    constant = None if bias is None else np.asarray(bias).reshape(-1)
    grids = {"affine": [*given, Affine(1.0)], "results": [Affine(step)]}
    return Layer(cls, [x, weights, constant], options | grids)


def same_as_litert(made: Layer) -> None:
    constant = tuple(k for k in (1, 2) if made.operands[k] is not None)
    check(made)
    ours = run_reference(made.cls, made.operands, constant, **made.options)
    theirs = run_litert(made.cls, made.operands, constant, **made.options)
    np.testing.assert_array_equal(ours[0], theirs[0], strict=True)


def rows(*numbers: int, columns: int) -> Array:
    return np.repeat(np.array(numbers, np.int16)[:, None], columns, 1)


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("bias", [0, 2**15 - 1, 2**15, -(2**15), -(2**15) - 1, 2**40, -(2**40)])
def test_sums_at_the_limits_of_32_bits_are_those_of_litert(bias: int, more: int) -> None:
    """Magnitudes of weights add up to 2^16 - 1, and a little more; inputs are the extremes."""
    whole, rest = divmod(MOST_WEIGHTS, 127)
    row = np.array([127] * whole + [rest, *([1] * more)], np.int8)
    weights = np.stack([row, -row, row * np.where(np.arange(len(row)) % 2, 1, -1)]).astype(np.int8)
    x = rows(LOW, HIGH, -1, 0, columns=len(row))
    x[3, ::2], x[3, 1::2] = LOW, HIGH
    biases = np.full(3, bias, np.int64)
    same_as_litert(alike(FullyConnected, x, weights, biases, 2.0**17))


@pytest.mark.parametrize("bias", [None, np.array([0, 3, -7], np.int64)])
@pytest.mark.parametrize("n", [516, 517, 4001])
def test_long_sums_of_dense_layers_are_those_of_litert(n: int, bias: Array | None) -> None:
    weights = np.stack([np.full(n, w, np.int8) for w in (127, -127, 1)])
    weights[2] = np.random.default_rng(n).integers(-127, 128, n)
    same_as_litert(alike(FullyConnected, rows(LOW, HIGH, columns=n), weights, bias, 2.0**20))


@pytest.mark.parametrize("depth", [57, 58, 300])
def test_long_sums_of_convolutions_are_those_of_litert(depth: int) -> None:
    """3 x 3 taps of this depth: 513 products and more; by rows, and dilated tap by tap."""
    rng = np.random.default_rng(depth)
    x = np.where(rng.random((1, 5, 6, depth)) < 0.5, LOW, HIGH).astype(np.int16)
    x[0, :3] = LOW
    weights = np.full((35, 3, 3, depth), 127, np.int8)
    weights[1:] = rng.integers(-127, 128, weights[1:].shape)
    made = alike(Conv2D, x, weights, rng.integers(-(2**35), 2**35, 35), 2.0**19)
    same_as_litert(made)
    made.options["dilation_w_factor"] = 2
    same_as_litert(made)


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
@pytest.mark.parametrize("step", [2.0**-12, 0.25, 0.5, 0.9, 1.0, 3.0, 2.0**17, 2.0**18, 1e8, 1e12])
def test_factors_of_all_sizes_equal_the_reference(cls: type[Op], step: float) -> None:
    """Sums that count many steps of the result, one, and nearly none."""
    rng = np.random.default_rng(3)
    shape = (1, 3, 3, 40) if cls is DepthwiseConv2D else (40, 3, 3, 40)
    x = rng.integers(LOW, HIGH, (1, 6, 6, 40)).astype(np.int16)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    check(alike(cls, x, weights, np.arange(40), step))


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
@pytest.mark.parametrize("bias", BIASES)
def test_channels_with_factors_of_all_sizes_equal_the_reference(cls: type[Op], bias: Any) -> None:
    """Small sums and large ones, of channels whose factors are from 1e-12 to 1000."""
    rng = np.random.default_rng(5)
    weights = (1, 3, 3, 40) if cls is DepthwiseConv2D else (40, 3, 3, 40)
    x = (rng.integers(LOW, HIGH, (1, 6, 6, 40)) >> rng.integers(0, 15, 40)).astype(np.int16)
    given = None if bias is None else rng.integers(-(10**6), 10**6, 40).astype(bias)
    if given is not None and bias is np.int64:
        given[:20] <<= 23
    made = alike(cls, x, rng.integers(-127, 128, weights).astype(np.int8), given, 1.0)
    scales = np.geomspace(1e-12, 1000.0 if bias is not np.int32 else 0.9, 40)
    of_x, of_weights, of_bias = made.options["affine"]
    made.options["affine"] = [of_x, of_weights._replace(scale=scales.tolist()), of_bias]
    check(made)


@pytest.mark.parametrize("sample", SAMPLES[::4])
def test_compiled_layers_take_weights_of_4_bits(sample: tuple[type[Op], Any, Any, Any]) -> None:
    cls, shape, weights, options = sample
    four = TensorType.INT4
    made = layer(cls, shape, weights, 3, INT16, bias=np.int64, weights_type=four, **options)
    (want,) = run_reference(cls, made.operands, (1, 2), **made.options)
    model = one_op(cls, made.operands, (1, 2), **made.options)
    np.testing.assert_array_equal(run_native(model, made.x), want, strict=True)


def test_sums_with_a_bias_of_32_bits_that_may_wrap_around_are_left_to_the_reference() -> None:
    x = np.full((1, 3, 3, 600), LOW, np.int16)
    weights = np.full((2, 1, 1, 600), 127, np.int8)
    assert declines(
        Conv2D,
        [x, weights, np.zeros(2, np.int32)],
        (1, 2),
        **alike(Conv2D, x, weights, None).options,
    )
