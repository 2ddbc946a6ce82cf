"""LQ_FULLY_CONNECTED and LQ_CONV_2D with evenly spaced levels, as products of bytes: sums are
integers, so results are the formula's but for the rounding of two products and a sum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array
from luciole.kernels.layers.geometry import sequence
from luciole.kernels.layers.levels import even_layer
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests import lq_conv_support, lq_support
from tests.lq_conv_support import ConvLayer, random_conv
from tests.lq_support import Layer, check_parts, random_input, random_layer

ROUNDING = 4 * float(np.finfo(np.float32).eps)


@pytest.fixture(autouse=True)
def by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply bytes whatever the layer's size and bits; counting bits would fail."""
    monkeypatch.setattr(even_layer, "LEAST_ROWS", 0)
    monkeypatch.setattr(even_layer, "LEAST_PAIRS", 0)
    monkeypatch.setattr(even_layer, "pays_in_a_batch", lambda kx, kw: True)


def even_basis(shape: tuple[int, ...], seed: int) -> Array:
    """Elements that are powers of two apart, in any order and with any signs."""
    rng = np.random.default_rng([*shape, seed])
    units = rng.uniform(0.1, 0.3, (*shape[:-1], 1)).astype(np.float32)
    order = np.argsort(rng.random(shape), -1)
    signs = rng.choice([-1, 1], shape)
    basis: Array = (units * signs * 2.0**order).astype(np.float32)
    return basis


def even_dense(n: int, o: int, kx: int, kw: int) -> Layer:
    layer = random_layer(n, o, kx, kw)
    basis, scales = even_basis((kx,), 1), even_basis((o, kw), 2)
    bias = np.random.default_rng(3).normal(size=o).astype(np.float32)
    return replace(layer, input_scales=basis, weights_scales=scales, bias=bias, input_offset=0.7)


def even_conv(
    kernel: tuple[int, int], c: int, o: int, bits: tuple[int, int], **window: Any
) -> ConvLayer:
    layer = random_conv(kernel, c, o, *bits, **window)
    basis, scales = even_basis((bits[0],), 1), even_basis((o, bits[1]), 2)
    bias = np.random.default_rng(3).normal(size=o).astype(np.float32)
    return replace(layer, input_scales=basis, weights_scales=scales, bias=bias, input_offset=0.7)


def check(y: Array, wanted: Array) -> None:
    """Results are the formula's but for rounding."""
    assert y.dtype == np.float32
    scale = float(np.abs(wanted).max(initial=1e-30))
    np.testing.assert_allclose(y, wanted, rtol=0, atol=ROUNDING * scale)


@pytest.mark.parametrize(("kx", "kw"), [(1, 3), (2, 4), (3, 3), (4, 4), (4, 2), (2, 1)])
@pytest.mark.parametrize(("n", "rows"), [(1, 1), (37, 5), (100, 18)])
def test_dense_layers_give_what_the_formula_gives(kx: int, kw: int, n: int, rows: int) -> None:
    layer = even_dense(n, 21, kx, kw)
    x = random_input((rows, n))
    check(layer.native(x), lq_support.oracle(layer, x))


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("offset", [0.0, 0.7])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations"),
    [
        ((1, 1), (1, 1), (1, 1)),
        ((3, 3), (1, 1), (1, 1)),
        ((3, 2), (2, 1), (1, 1)),
        ((3, 3), (1, 1), (2, 3)),
    ],
)
def test_windows_give_what_the_formula_gives(
    padding: Padding,
    offset: float,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> None:
    """The offset of inputs counts where taps lie inside of the image alone."""
    layer = even_conv(kernel, 5, 18, (3, 3), padding=padding, strides=strides, dilations=dilations)
    layer = replace(layer, input_offset=offset)
    x = random_input((2, 7, 9, 5))
    check(layer.native(x), lq_conv_support.oracle(layer, x))


def test_images_smaller_than_the_windows() -> None:
    layer = even_conv((5, 4), 3, 2, (4, 4))
    x = random_input((1, 2, 1, 3))
    check(layer.native(x), lq_conv_support.oracle(layer, x))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_have_levels(value: float) -> None:
    """NaN is on the lowest level, as everywhere."""
    layer, x = even_dense(40, 9, 4, 4), random_input((6, 40))
    x[:, ::3] = value
    check(layer.native(x), lq_support.oracle(layer, x))


def test_a_number_on_a_threshold_has_the_level_below() -> None:
    layer = replace(even_dense(7, 9, 3, 3), input_offset=0.0)
    layer = replace(layer, input_scales=np.array([0.25, 0.5, 1.0], np.float32))
    x = np.array([[-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]] * 5, np.float32)
    check(layer.native(x), lq_support.oracle(layer, x))


@pytest.mark.parametrize("activation", [Act.RELU, Act.RELU6, Act.TANH])
def test_activations(activation: Act) -> None:
    layer, x = replace(even_dense(33, 21, 3, 3), activation=activation), random_input((5, 33))
    np.testing.assert_allclose(layer.native(x), lq_support.oracle(layer, x), rtol=0, atol=2e-6)


def test_bases_one_bit_from_even_are_counted() -> None:
    """An element that is not exactly twice the one before changes the sums."""
    layer, x = even_dense(200, 9, 3, 3), random_input((5, 200))
    scales = layer.weights_scales.copy()
    scales[4, 1] = np.nextafter(scales[4, 1], np.float32(9))
    layer = replace(layer, weights_scales=scales)
    assert not even_layer.is_even(scales)
    y, wanted = layer.native(x), lq_support.oracle(layer, x)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(("unit", "offset"), [(0.0, 0.7), (1e-6, 0.7), (1e-39, 0.0)])
def test_levels_that_are_far_or_close_together_are_counted(unit: float, offset: float) -> None:
    layer, x = even_dense(20, 4, 3, 3), random_input((5, 20))
    basis = (unit * np.array([0.25, 0.5, 1])).astype(np.float32)
    layer = replace(layer, input_scales=basis, input_offset=offset)
    y, wanted = layer.native(x), lq_support.oracle(layer, x)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_outputs_without_weights_give_the_bias() -> None:
    layer, x = even_dense(20, 4, 3, 3), random_input((5, 20))
    scales = layer.weights_scales.copy()
    scales[2] = 0
    assert layer.bias is not None
    y = replace(layer, weights_scales=scales).native(x)
    assert y[:, 2].tolist() == [layer.bias[2]] * 5


@pytest.mark.parametrize("threads", [2, 3])
def test_parts_for_threads_do_together_what_one_does(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence, "LEAST_CYCLES", 1)
    monkeypatch.setattr(sequence, "LEAST_BEHIND_ONE", 1)
    x = random_input((18, 70))
    check_parts(even_dense(70, 40, 3, 3).model(x), x, threads)
    images = random_input((1, 9, 8, 20))
    check_parts(even_conv((3, 3), 20, 18, (3, 3)).model(images), images, threads)


def test_layers_of_few_pairs_of_bits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where counting takes less time."""
    monkeypatch.undo()
    assert even_layer.pays_in_a_batch(3, 3)
    assert not even_layer.pays_in_a_batch(4, 2)
    assert not even_layer.pays(4, 64)
    assert even_layer.pays(9, 64)
    assert even_layer.pays(1, 3)
