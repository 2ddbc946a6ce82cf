"""INSTANCE_NORM against plain loops.

LiteRT has no such operator, the onert wheel no kernel ("NYI for operation 'InstanceNorm'").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import check_compiled, declines
from tests.support import run_reference

RNG = np.random.default_rng(5)


def factors(n: int) -> Array:
    return RNG.normal(size=n).astype(np.float32)


def looped(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    """Channel by channel, in Python's own numbers; channels first."""
    y = np.zeros(x.shape, np.float64)
    for n, c in np.ndindex(*x.shape[:2]):
        pixels = [float(v) for v in x[n, c].ravel()]
        mean = math.fsum(pixels) / len(pixels)
        variance = math.fsum((v - mean) ** 2 for v in pixels) / len(pixels)
        scale = float(gamma[c % len(gamma)]) / math.sqrt(variance + epsilon)
        y[n, c] = scale * (x[n, c] - mean) + float(beta[c % len(beta)])
    return y


@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("epsilon", [1e-5, 0.5])
@pytest.mark.parametrize("shape", [(2, 5, 7, 3), (1, 1, 1, 3), (2, 3, 9), (1, 3, 1)])
def test_channels_get_mean_and_variance(
    shape: tuple[int, ...], epsilon: float, channels: int
) -> None:
    x = (RNG.normal(size=shape) * 3 + 20).astype(np.float32)
    gamma, beta = factors(channels), factors(channels)
    (ours,) = run_reference(InstanceNorm, [x, gamma, beta], epsilon=epsilon)
    first = np.moveaxis(x, -1, 1) if x.ndim == 4 else x
    wanted = looped(first, gamma, beta, epsilon)
    wanted = np.moveaxis(wanted, 1, -1) if x.ndim == 4 else wanted
    np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


def test_instance_norm_applies_its_activation() -> None:
    x, one = factors(24).reshape(1, 4, 3, 2), np.ones(1, np.float32)
    (plain,) = run_reference(InstanceNorm, [x, one, one], epsilon=1e-3)
    relu = ActivationFunctionType.RELU
    (cut,) = run_reference(InstanceNorm, [x, one, one], epsilon=1e-3, activation=relu)
    assert plain.min() < 0
    np.testing.assert_array_equal(cut, np.maximum(plain, 0))


def test_instance_norm_keeps_unknown_dimensions() -> None:
    graph = Graph()
    x, gamma = graph.add_input("x", (None, 8, None, None)), graph.add_input("gamma", (5,))
    assert InstanceNorm(x, gamma, gamma).infer_shape() == (None, 8, None, None)


@pytest.mark.parametrize(
    ("shape", "gamma", "beta", "message"),
    [
        ((1, 2, 2, 3), (4,), (3,), "gamma has 4 elements, input has 3 channels"),
        ((1, 3, 2), (3,), (2,), "beta has 2 elements, input has 3 channels"),
        ((1, 3), (3,), (3,), r"input has shape \[1,3\], rank 3 or 4 is needed"),
        ((1, 2, 2, 3), (1, 3), (3,), r"gamma has shape \[1,3\], rank 1 is needed"),
    ],
)
def test_instance_norm_refuses_operands_that_do_not_fit(
    shape: tuple[int, ...], gamma: tuple[int, ...], beta: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(InstanceNorm, [np.ones(s, np.float32) for s in (shape, gamma, beta)])


SHAPES = [
    (2, 5, 7, 3),
    (1, 3, 4, 16),
    (3, 2, 3, 37),
    (1, 1, 1, 1),
    (2, 0, 3, 4),
    (2, 3, 9),
    (1, 4, 16),
    (2, 1, 65),
    (1, 3, 0),
]


@pytest.mark.parametrize("counts", [(None, None), (1, None), (None, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_compiled_kernel_gives_the_same(
    shape: tuple[int, ...], counts: tuple[int | None, int | None]
) -> None:
    channels = shape[3] if len(shape) == 4 else shape[1]
    x = (RNG.normal(size=shape) * 3 + 20).astype(np.float32)
    gamma, beta = (factors(count or channels) for count in counts)
    for activation in (ActivationFunctionType.NONE, ActivationFunctionType.RELU6):
        attributes: dict[str, Any] = {"epsilon": 1e-3, "activation": activation}
        check_compiled(InstanceNorm, [x, gamma, beta], rtol=1e-6, atol=1e-9, **attributes)


def test_the_compiled_kernel_keeps_the_digits_of_large_means() -> None:
    """Squares of these overflow a float, and their distances lie in its last bits."""
    x = (RNG.normal(size=(1, 40, 50, 3)) + 1e5).astype(np.float32) * np.float32(1e16)
    one = np.ones(3, np.float32)
    check_compiled(InstanceNorm, [x, one, one], rtol=1e-6, atol=1e-9)
    check_compiled(InstanceNorm, [x.reshape(1, 3, 2000), one, one], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("first", [1e6, -1e12, 0])
@pytest.mark.parametrize("shape", [(1, 64, 64, 3), (1, 3, 4096)])
def test_the_compiled_kernel_keeps_digits_beside_a_first_number_far_from_all(
    shape: tuple[int, ...], first: float
) -> None:
    """Distances are taken from it."""
    x = (RNG.normal(size=shape) + 1e3).astype(np.float32)
    x[(0, 0, 0) if len(shape) == 4 else (0, slice(None), 0)] = first
    one = np.ones(3, np.float32)
    check_compiled(InstanceNorm, [x, one, 0 * one], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 15, 16])
@pytest.mark.parametrize("size", [(3, 5), (4, 4), (7, 9)])
def test_images_of_few_channels_are_read_16_pixels_at_once(
    channels: int, size: tuple[int, int]
) -> None:
    """Where there are as many; the last ones are added one by one."""
    x = RNG.normal(2, 3, (2, *size, channels)).astype(np.float32) + np.arange(channels, dtype="f")
    operands = [x, factors(channels), factors(channels)]
    check_compiled(InstanceNorm, operands, rtol=1e-5, atol=1e-6, epsilon=1e-5)


@pytest.mark.parametrize("shape", [(1, 5, 5, 17), (1, 3, 37)])
def test_channels_of_one_number_are_shifted_alone(shape: tuple[int, ...]) -> None:
    channels = shape[3] if len(shape) == 4 else shape[1]
    x = np.full(shape, 0.1, np.float32)
    shift = factors(channels)
    check_compiled(InstanceNorm, [x, factors(channels), shift], rtol=1e-6, atol=0, epsilon=1e-5)


@pytest.mark.parametrize("shape", [(1, 4, 5, 3), (1, 3, 20)])
def test_the_compiled_kernel_keeps_nan_to_its_channel(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    x[0, -1, -1] = [np.nan, 1, 2] if len(shape) == 4 else np.nan
    one = np.ones(3, np.float32)
    check_compiled(InstanceNorm, [x, one, one], rtol=1e-6, atol=1e-9, epsilon=1e-3)


def test_a_fused_tanh_is_left_to_the_reference() -> None:
    one = np.ones(1, np.float32)
    assert declines(
        InstanceNorm,
        [np.ones((1, 2, 2, 1), np.float32), one, one],
        activation=ActivationFunctionType.TANH,
    )
