"""Integer weights under float activations, against LiteRT's reference kernels.

Integers are the same, sums of floats are rounded in another order: to 1e-6 of the largest result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import built, check_compiled, declines, run_compiled
from tests.ops.int8_support import SAMPLES, convolution
from tests.support import Affine, one_op, run_litert, run_reference

SHAPES = [sample for sample in SAMPLES if sample[1][0] < 3]


def operands(
    cls: type[Op], shape: tuple[int, ...], weights_shape: tuple[int, ...], bits: int
) -> tuple[list[Array], int]:
    """Activations, weights and bias, and the weights' axis of outputs."""
    rng = np.random.default_rng(sum(shape) + bits)
    axis = 3 if cls is DepthwiseConv2D else 0
    x = rng.normal(rng.normal(), 3, shape).astype(np.float32)
    most = 2 ** (bits - 1)
    weights = rng.integers(1 - most, most, weights_shape).astype(np.int8)
    return [x, weights, rng.normal(size=weights_shape[axis]).astype(np.float32)], axis


def check(
    cls: type[Op], arrays: list[Array], weights: Affine, constant: tuple[int, ...], **options: Any
) -> None:
    """Ours are LiteRT's results."""
    options["affine"] = (None, weights)
    (ours,) = run_reference(cls, arrays, constant, **options)
    (theirs,) = run_litert(cls, arrays, constant, version=VERSIONS[cls], **options)
    tolerance = 1e-6 * float(np.abs(theirs).max())
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, strict=True)


VERSIONS = {Conv2D: 2, DepthwiseConv2D: 4, FullyConnected: 9, BatchMatMul: 4}


@pytest.mark.parametrize("sample", SHAPES)
@pytest.mark.parametrize(("bits", "channels"), [(8, True), (8, False), (4, True)])
def test_hybrid_layers_give_what_litert_gives(
    sample: tuple[type[Op], Any, Any, Any], bits: int, channels: bool
) -> None:
    cls, shape, weights, options = sample
    arrays, axis = operands(cls, shape, weights, bits)
    if cls is DepthwiseConv2D and not (channels and bits == 8):
        pytest.skip("LiteRT wants 8 bits and a scale for each channel here")
    if shape[-1] != weights[-1] and cls is Conv2D and not channels:
        pytest.skip("LiteRT wants a scale for each channel where there are groups")
    scales = np.random.default_rng(1).uniform(0.01, 0.03, weights[axis] if channels else 1)
    scales[1:2] = 0  # a channel whose weights are 0
    given = Affine(scales.tolist(), [0] * len(scales), axis, TensorType.INT4 if bits < 8 else None)
    relu = ActivationFunctionType.RELU
    check(cls, arrays, given, (1, 2), **options | {"activation": relu})


@pytest.mark.parametrize("sample", SHAPES)
def test_weights_that_files_call_unsigned_are_signed_ones(
    sample: tuple[type[Op], Any, Any, Any],
) -> None:
    """As in LiteRT, whose DEPTHWISE_CONV_2D has left them and wants a scale for each channel."""
    cls, shape, weights, options = sample
    (x, known, bias), axis = operands(cls, shape, weights, 8)
    is_alone = cls is Conv2D and shape[-1] == weights[-1]
    scales = [0.02] * (1 if cls is not DepthwiseConv2D else weights[axis])
    given = Affine(scales, [0] * len(scales), axis)
    arrays, options = [x, known.view(np.uint8), bias], options | {"affine": (None, given)}
    check_compiled(cls, arrays, (1, 2), **options)
    (ours,) = run_reference(cls, arrays, (1, 2), **options)
    (wanted,) = run_reference(cls, [x, known, bias], (1, 2), **options)
    np.testing.assert_array_equal(ours, wanted)
    if is_alone or cls is FullyConnected:
        check(cls, arrays, given, (1, 2), **options)


def test_conv_2d_refuses_several_scales_of_weights_called_unsigned() -> None:
    x, weights = np.ones((1, 3, 3, 2), np.float32), np.ones((2, 1, 1, 2), np.uint8)
    options = convolution() | {"affine": (None, Affine([0.1, 0.2], [0, 0]))}
    assert declines(Conv2D, [x, weights], (1,), **options)
    with pytest.raises(LucioleError, match="need one scale and zero point 0"):
        run_reference(Conv2D, [x, weights], (1,), **options)


@pytest.mark.parametrize("channels", [True, False])
@pytest.mark.parametrize("shape", [(3, 17), (1, 40), (4, 64)])
def test_hybrid_rows_on_a_grid_with_a_zero_point_give_what_litert_gives(
    shape: tuple[int, int], channels: bool
) -> None:
    arrays, _ = operands(FullyConnected, shape, (20, shape[1]), 8)
    arrays[0] += 5
    scales = np.random.default_rng(1).uniform(0.01, 0.03, 20 if channels else 1)
    given = Affine(scales.tolist(), [0] * len(scales))
    check(FullyConnected, arrays, given, (1, 2), asymmetric_quantize_inputs=True)


@pytest.mark.parametrize("asymmetric", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_hybrid_products_give_what_litert_gives(asymmetric: bool, adjoint: bool) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(1, 2, (2, 5, 12)).astype(np.float32)
    y = rng.integers(-127, 128, (2, 7, 12) if adjoint else (2, 12, 7)).astype(np.int8)
    options = {"asymmetric_quantize_inputs": asymmetric, "adjoint_rhs": adjoint}
    check(BatchMatMul, [x, y], Affine(0.013), (1,), **options)


@pytest.mark.parametrize("least", [0, -100, -128, -155])
@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D, FullyConnected, BatchMatMul])
def test_hybrid_layers_round_halves_as_litert_does(cls: type[Op], least: int) -> None:
    """Away from zero, before the zero point is added: results are the quantized inputs."""
    x = halves_between(least, least + 255)
    options: dict[str, Any]
    if cls in (FullyConnected, BatchMatMul):
        arrays: list[Array] = [x, np.eye(x.size, dtype=np.int8)]
        given, options = Affine(1.0), {"asymmetric_quantize_inputs": True}
    else:
        axis, shape = (0, (2, 1, 1, 1)) if cls is Conv2D else (3, (1, 1, 1, 2))
        arrays = [x.reshape(1, 1, -1, 1), np.ones(shape, np.int8), np.zeros(2, np.float32)]
        given, options = Affine([1.0, 2.0], [0, 0], axis), convolution()
    options["affine"] = (None, given)
    constant = tuple(range(1, len(arrays)))
    (ours,) = run_reference(cls, arrays, constant, **options)
    (theirs,) = run_litert(cls, arrays, constant, version=VERSIONS[cls], **options)
    np.testing.assert_array_equal(ours, theirs, strict=True)
    if cls is not BatchMatMul:  # has no compiled form
        check_compiled(cls, arrays, constant, **options)


def halves_between(least: int, most: int) -> Array:
    """Some numbers [1, 50] that lie halfway between integers, and the floats before some of them,
    on a grid whose steps are 1.
    """
    rng = np.random.default_rng(least & 0xFF)
    x = rng.integers(least + 1, most - 1, (1, 50)).astype(np.float32) + np.float32(0.5)
    x[0, ::3] = np.nextafter(x[0, ::3], np.float32(0))
    x[0, :4] = least, most, np.nextafter(np.float32(0.5), np.float32(0)), min(0.5, most)
    return x


@pytest.mark.parametrize("asymmetric", [True, False])
@pytest.mark.parametrize("cls", [FullyConnected, BatchMatMul])
def test_hybrid_products_of_no_rows_are_empty_as_in_litert(cls: type[Op], asymmetric: bool) -> None:
    x = np.zeros((0, 7) if cls is FullyConnected else (0, 3, 7), np.float32)
    weights = np.ones((4, 7) if cls is FullyConnected else (7, 4), np.int8)
    options = {"affine": (None, Affine(0.1)), "asymmetric_quantize_inputs": asymmetric}
    (ours,) = run_reference(cls, [x, weights], (1,), **options)
    (theirs,) = run_litert(cls, [x, weights], (1,), version=VERSIONS[cls], **options)
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
def test_hybrid_layers_of_no_images_are_empty(cls: type[Op]) -> None:  # LiteRT refuses them
    axis, shape = (0, (3, 3, 3, 2)) if cls is Conv2D else (3, (1, 3, 3, 2))
    x, weights = np.zeros((0, 4, 4, 2), np.float32), np.ones(shape, np.int8)
    given = Affine([0.1] * shape[axis], [0] * shape[axis], axis)
    (y,) = run_reference(cls, [x, weights], (1,), affine=(None, given), **convolution())
    assert y.shape == (0, 4, 4, shape[axis])


def test_hybrid_products_of_nothing_are_zeros() -> None:
    x, y = np.zeros((2, 3, 0), np.float32), np.zeros((0, 4), np.int8)
    (sums,) = run_reference(BatchMatMul, [x, y], (1,), affine=(None, Affine(0.1)))
    np.testing.assert_array_equal(sums, np.zeros((2, 3, 4), np.float32), strict=True)


@pytest.mark.parametrize("value", [0, 1e-42, 3e38, np.inf, np.nan])
@pytest.mark.parametrize("rest", [0, 1, -1])
def test_hybrid_extremes_stay_in_their_image(value: float, rest: float) -> None:
    """What is not finite makes all of its image NaN, and nothing else."""
    x = np.full((2, 3, 3, 4), rest, np.float32)
    x[0, 1, 1, 2] = value
    arrays: list[Array] = [x, np.ones((1, 3, 3, 4), np.int8)]
    given = Affine([0.5] * 4, [0] * 4, 3)
    (y,) = run_reference(DepthwiseConv2D, arrays, (1,), affine=(None, given), **convolution())
    assert np.isnan(y[0]).all() == (not np.isfinite(value))
    np.testing.assert_allclose(y[1, 1, 1], 4.5 * rest, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Affine([0.5] * 4, 0, 3), "scales along axis 3, not 0"),
        (Affine(0.5, 3), r"zero points \[3\]; 0 is needed"),
        (None, "the weights tensor has no scale"),
    ],
)
def test_hybrid_layers_refuse_weights_that_are_quantized_otherwise(
    given: Affine | None, message: str
) -> None:
    arrays: list[Array] = [np.ones((1, 3, 3, 4), np.float32), np.ones((2, 2, 2, 4), np.int8)]
    with pytest.raises(LucioleError, match=message):
        run_reference(Conv2D, arrays, (1,), affine=(None, given), **convolution())


def test_hybrid_products_refuse_several_scales() -> None:
    arrays: list[Array] = [np.ones((3, 4), np.float32), np.ones((4, 2), np.int8)]
    given = Affine([0.5, 0.7], [0, 0], 1)
    with pytest.raises(LucioleError, match="integer weights under float inputs need one scale"):
        run_reference(BatchMatMul, arrays, (1,), affine=(None, given))


@pytest.mark.parametrize(("shape", "outputs"), [((1, 40), 50), ((5, 7), 3), ((2, 3, 64), 61)])
@pytest.mark.parametrize("channels", [True, False])
@pytest.mark.parametrize("asymmetric", [True, False])
def test_compiled_hybrid_rows_equal_the_reference(
    shape: tuple[int, ...], outputs: int, channels: bool, asymmetric: bool
) -> None:
    arrays, _ = operands(FullyConnected, shape, (outputs, shape[-1]), 8)
    arrays[0].reshape(-1, shape[-1])[-1] *= 1e-42
    given = weight_scales(outputs if channels else 1, 0)
    options: dict[str, Any] = {"affine": (None, given), "asymmetric_quantize_inputs": asymmetric}
    check_compiled(FullyConnected, arrays, (1, 2), **options)
    check_compiled(FullyConnected, arrays[:2], (1,), **options)


def weight_scales(count: int, axis: int) -> Affine:
    """Random scales of symmetric weights."""
    scales = np.random.default_rng(1).uniform(0.01, 0.03, count)
    return Affine(scales.tolist(), [0] * count, axis)


WINDOWS = [sample for sample in SAMPLES if sample[0] is not FullyConnected]


@pytest.mark.parametrize("sample", WINDOWS)
def test_compiled_hybrid_layers_equal_the_reference(sample: tuple[type[Op], Any, Any, Any]) -> None:
    check_sample(sample)


def check_sample(sample: tuple[type[Op], Any, Any, Any]) -> None:
    """The same to the last bit, whatever lies around 0: padding stands for 0, not for the zero
    point.
    """
    cls, shape, weights, options = sample
    arrays, axis = operands(cls, shape, weights, 8)
    given = weight_scales(weights[axis], axis)
    options = {**options, "affine": (None, given), "activation": ActivationFunctionType.RELU6}
    for x in (arrays[0], abs(arrays[0]), -abs(arrays[0]) - 1):
        check_compiled(cls, [x, *arrays[1:]], (1, 2), **options)
    check_compiled(cls, arrays[:2], (1,), **options)


LAYERS: list[tuple[type[Op], tuple[int, ...]]] = [
    (Conv2D, (40, 3, 3, 6)),
    (DepthwiseConv2D, (1, 3, 3, 6)),
]


@pytest.mark.parametrize(("cls", "weights"), LAYERS)
@pytest.mark.parametrize("value", [0, 1e-45, 1e-42, 3e38, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("rest", [0, 1, -1e-42])
def test_compiled_hybrid_extremes_equal_the_reference(
    cls: type[Op], weights: tuple[int, ...], value: float, rest: float
) -> None:
    """Numbers that are not finite, and grids whose steps are too small to divide by."""
    arrays, axis = operands(cls, (3, 6, 6, 6), weights, 8)
    arrays[0][:2] = rest
    arrays[0][1, 2, 3, 1] = value
    given = weight_scales(weights[axis], axis)
    check_compiled(cls, arrays, (1, 2), affine=(None, given), **convolution())


@pytest.mark.parametrize(("cls", "weights"), LAYERS)
def test_compiled_hybrid_layers_round_halves_as_the_reference(
    cls: type[Op], weights: tuple[int, ...]
) -> None:
    """Steps of 1 from -128 to 127: every integer, every half, and their neighbours."""
    x = np.arange(-256, 255).astype(np.float32) / 2
    x = np.concatenate([x, np.nextafter(x, np.float32(-200)), np.nextafter(x, np.float32(200))])
    x = np.clip(np.append(x, np.zeros(-len(x) % 6, np.float32)), -128, 127)
    arrays, axis = operands(cls, (1, 1, len(x) // 6, 6), weights, 8)
    given = weight_scales(weights[axis], axis)
    arrays[0] = x.reshape(arrays[0].shape)
    check_compiled(cls, arrays, (1, 2), affine=(None, given), **convolution())


@pytest.mark.parametrize(("cls", "weights"), LAYERS)
def test_compiled_hybrid_layers_give_what_litert_gives(
    cls: type[Op], weights: tuple[int, ...]
) -> None:
    """Steps that need no division: LiteRT's integers are the reference's."""
    arrays, axis = operands(cls, (2, 6, 6, 6), weights, 8)
    options = {"affine": (None, weight_scales(weights[axis], axis)), **convolution()}
    (theirs,) = run_litert(cls, arrays, (1, 2), version=VERSIONS[cls], **options)
    (ours,) = run_compiled(cls, arrays, (1, 2), **options)
    tolerance = 1e-6 * float(np.abs(theirs).max())
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, strict=True)


@pytest.mark.parametrize(("cls", "weights"), LAYERS)
def test_compiled_hybrid_layers_with_tanh(cls: type[Op], weights: tuple[int, ...]) -> None:
    """The compiled hyperbolic tangent rounds otherwise than NumPy's."""
    arrays, axis = operands(cls, (1, 6, 6, 6), weights, 8)
    options = {"affine": (None, weight_scales(weights[axis], axis)), **convolution()}
    options["activation"] = ActivationFunctionType.TANH
    check_compiled(cls, arrays, (1, 2), atol=1e-6, **options)


@pytest.mark.parametrize("cls", [Conv2D, DepthwiseConv2D])
def test_threads_share_compiled_hybrid_layers(cls: type[Op]) -> None:
    """Layers that are large enough: ``run_compiled`` compares shares with the whole."""
    weights = (1, 3, 3, 96) if cls is DepthwiseConv2D else (64, 3, 3, 96)
    arrays, axis = operands(cls, (3, 30, 30, 96), weights, 8)
    given = weight_scales(weights[axis], axis)
    options = {"affine": (None, given), **convolution()}
    step, _ = built(one_op(cls, arrays, (1, 2), **options).graph.ops[0], arrays)
    assert step is not None
    assert step.split is not None
    assert [len(stage) for stage in step.split(2)] == [2, 2]
    check_compiled(cls, arrays, (1, 2), **options)


def test_compiled_hybrid_layers_decline_sums_that_may_not_fit() -> None:
    """65793 products of 255 and 128 are as many as int32 holds."""
    for depth, fits in ((65_793, True), (65_794, False)):
        arrays: list[Array] = [np.ones((1, depth), np.float32), np.ones((2, depth), np.int8)]
        options = {"affine": (None, weight_scales(2, 0)), "asymmetric_quantize_inputs": True}
        assert declines(FullyConnected, arrays, (1,), **options) == (not fits)
