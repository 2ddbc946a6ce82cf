"""Layers as Samsung ONE quantizes them: UINT8 weights with a zero point for each output, and INT16
weights, against the arithmetic that luci-interpreter takes from TFLite, in Python's own integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Op
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import Padding
from tests.native_support import check_compiled, declines
from tests.support import Affine, one_op, run_reference

RNG = np.random.default_rng(3)
OUTPUTS, STEP = 5, {"stride_h": 1, "stride_w": 1}
BYTES = {"input": Affine(0.02, 77), "result": Affine(0.6, 120)}
SHORTS = {"input": Affine(0.001), "result": Affine(0.01)}


def codes(dtype: type, *shape: int, least: int | None = None) -> Array:
    limits = np.iinfo(dtype)
    low = limits.min if least is None else least
    return RNG.integers(low, limits.max, shape, dtype, endpoint=True)


def scales(count: int, unit: float) -> list[float]:
    return [float(np.float32(x * unit)) for x in RNG.uniform(0.5, 2, count)]


def split_factor(factor: float) -> tuple[int, int]:
    fraction, shift = math.frexp(factor)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    return (multiplier // 2, shift + 1) if multiplier == 2**31 else (multiplier, shift)


def multiplied(x: int, factor: float) -> int:
    """TFLite's MultiplyByQuantizedMultiplier of int32, for factors below 1: rounded twice."""
    multiplier, shift = split_factor(factor)
    high, down = (x * multiplier + 2**30) >> 31, -shift
    rest, half = high & ((1 << down) - 1), ((1 << down) - 1) >> 1
    return (high >> down) + int(rest > half + (high < 0))


def multiplied_wide(x: int, factor: float) -> int:
    """The same of int64: multipliers have 15 bits."""
    multiplier, shift = split_factor(factor)
    reduced = (multiplier + 2**15) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return (x * reduced + (1 << (14 - shift))) >> (15 - shift)


def windows(x: Array, size: int) -> Iterator[tuple[tuple[int, int, int], Array]]:
    for n, i, j in np.ndindex(len(x), x.shape[1] - size + 1, x.shape[2] - size + 1):
        yield (n, i, j), x[n, i : i + size, j : j + size]


def looped(x: Array, filter: Array, bias: Array, points: list[int], factors: list[float]) -> Array:
    """Convolve, VALID, one window and output after the other; without the result's zero point."""
    is_byte, size = x.dtype == np.uint8, filter.shape[1]
    wide = x.astype(object) - (BYTES["input"].zero_point if is_byte else 0)
    shape = (len(x), x.shape[1] - size + 1, x.shape[2] - size + 1, len(filter))
    y = np.zeros(shape, object)
    for place, window in windows(wide, size):
        for o, weights in enumerate(filter.astype(object)):
            total = int((window * (weights - points[o])).sum()) + int(bias[o])
            y[place][o] = (multiplied if is_byte else multiplied_wide)(total, factors[o])
    return y


def operands(dtype: type) -> tuple[Array, Array, Array, list[Affine], Affine]:
    grids = BYTES if dtype is np.uint8 else SHORTS
    x, wide = codes(dtype, 2, 7, 6, 3), np.int32 if dtype is np.uint8 else np.int64
    filter = codes(dtype, OUTPUTS, 3, 3, 3, least=None if dtype is np.uint8 else -32767)
    bias = RNG.integers(-5000, 5000, OUTPUTS).astype(wide)
    points = codes(np.uint8, OUTPUTS).tolist() if dtype is np.uint8 else [0] * OUTPUTS
    weights = Affine(scales(OUTPUTS, 0.01 if dtype is np.uint8 else 1e-5), points)
    return x, filter, bias, [grids["input"], weights, Affine(1.0)], grids["result"]


def factors_of(given: list[Affine], result: Affine, *, single: bool) -> list[float]:
    """A bytes' convolution multiplies the scales of input and weights in single precision."""
    first, to = (np.float32(np.ravel(a.scale)[0]) for a in (given[0], result))
    each = [np.float32(scale) for scale in np.ravel(given[1].scale)]
    if single:
        return [float(first * scale) / float(to) for scale in each]
    return [float(first) * float(scale) / float(to) for scale in each]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_convolutions_are_those_of_luci_interpreter(dtype: type) -> None:
    x, filter, bias, given, result = operands(dtype)
    factors = factors_of(given, result, single=dtype is np.uint8)
    points = np.ravel(given[1].zero_point).tolist()
    exact = looped(x, filter, bias, points, factors) + result.zero_point
    limits = np.iinfo(dtype)
    expected = np.clip(exact.astype(np.int64), limits.min, limits.max)
    step: dict[str, Any] = {**STEP, "padding": Padding.VALID}
    model = one_op(Conv2D, [x, filter, bias], (1, 2), affine=given, results=[result], **step)
    (y,) = Interpreter(model).run({"x0": x}).values()
    np.testing.assert_array_equal(y, expected)
    assert len(np.unique(y)) > 50


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_a_depthwise_layer_is_a_convolution_of_each_channel(dtype: type) -> None:
    _, filter, bias, given, result = operands(dtype)
    channels = codes(dtype, 2, 7, 6, OUTPUTS)
    of_each = np.ascontiguousarray(np.moveaxis(filter[..., :1], 0, -1)[:, :, 0])[None]
    scale, points, *_ = given[1]
    own = [given[0], Affine(scale, points, 3), given[2]]
    attributes: dict[str, Any] = {
        "affine": own,
        "results": [result],
        "padding": Padding.VALID,
        **STEP,
    }
    layer = [channels, of_each, bias]
    check_compiled(DepthwiseConv2D, layer, (1, 2), depth_multiplier=1, **attributes)
    (y,) = run_reference(DepthwiseConv2D, layer, (1, 2), depth_multiplier=1, **attributes)
    for o in range(OUTPUTS):
        alone = [given[0], Affine([scale[o]], [points[o]]), given[2]]  # type: ignore[index]
        attributes["affine"] = alone
        (one,) = run_reference(
            Conv2D,
            [channels[..., o : o + 1], filter[o : o + 1, :, :, :1], bias[o : o + 1]],
            (1, 2),
            **attributes,
        )
        np.testing.assert_array_equal(y[..., o], one[..., 0])


SHAPES = [(3, 2, 3), (16, 8, 1), (37, 5, 3), (64, 64, 1), (35, 3, 5)]


@pytest.mark.parametrize(("outputs", "depth", "size"), SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_compiled_layers_give_the_same(dtype: type, outputs: int, depth: int, size: int) -> None:
    is_byte = dtype is np.uint8
    grids, least = (BYTES, None) if is_byte else (SHORTS, -32767)
    points = codes(np.uint8, outputs).tolist() if is_byte else [0] * outputs
    scale, x = scales(outputs, 0.01 if is_byte else 1e-5), codes(dtype, 2, 5, 6, depth)
    bias = RNG.integers(-5000, 5000, outputs).astype(np.int32 if is_byte else np.int64)
    given = [grids["input"], Affine(scale, points), Affine(1.0)]
    attributes: dict[str, Any] = {"affine": given, "results": [grids["result"]]}
    filter = codes(dtype, outputs, size, size, depth, least=least)
    check_compiled(Conv2D, [x, filter, bias], (1, 2), **attributes, **STEP)
    weights = codes(dtype, outputs, 15 * depth, least=least)
    check_compiled(FullyConnected, [x.reshape(4, -1), weights, bias], (1, 2), **attributes)


def test_a_transposed_convolution_takes_zero_points_by_channel() -> None:
    x, filter, bias, given, result = operands(np.uint8)
    sizes = np.array([2, 7, 6, OUTPUTS], np.int32)
    own: list[Affine | None] = [None, given[1], given[0], given[2]]
    whole = {"affine": own, "results": [result], **STEP}
    (y,) = run_reference(TransposeConv, [sizes, filter, x, bias], (0, 1, 3), **whole)
    for o in range(OUTPUTS):
        scale, point = given[1].scale[o], given[1].zero_point[o]  # type: ignore[index]
        own = [None, Affine([scale], [point]), given[0], given[2]]
        alone = [np.array([2, 7, 6, 1], np.int32), filter[o : o + 1], x, bias[o : o + 1]]
        (one,) = run_reference(
            TransposeConv, alone, (0, 1, 3), affine=own, results=[result], **STEP
        )
        np.testing.assert_array_equal(y[..., o], one[..., 0])


def test_products_beyond_32_bits_are_left_to_the_reference() -> None:
    """Two products of -32768 by itself do not fit into the sum of a pair."""
    low = np.full((1, 1, 1, 4), -32768, np.int16)
    bias, given = np.zeros(1, np.int64), [Affine(1e-4), Affine(1e-4), Affine(1e-8)]
    attributes: dict[str, Any] = {"affine": given, "results": [Affine(1e-3)], **STEP}
    assert declines(Conv2D, [low, low, bias], (1, 2), **attributes)


@pytest.mark.parametrize("cls", [Conv2D, FullyConnected])
def test_zero_points_of_other_weights_stay_refused(cls: type[Op]) -> None:
    x, filter, bias, given, _ = operands(np.uint8)
    signed = [(a.astype(np.int16) - 128).astype(np.int8) for a in (x, filter)]
    if cls is FullyConnected:
        signed = [signed[0].reshape(14, 18), signed[1].reshape(OUTPUTS, 27)[:, :18].copy()]
    grids = [Affine(0.02, 0), Affine(given[1].scale, [1] * OUTPUTS), given[2]]
    attributes = STEP if cls is Conv2D else {}
    with pytest.raises(LucioleError, match=r"zero points \[1\]; 0 is needed"):
        run_reference(
            cls, [*signed, bias], (1, 2), affine=grids, results=[Affine(0.6)], **attributes
        )
