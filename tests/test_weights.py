"""The weights of layers in every format: codes, formats, and the numbers that kernels compute."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, LucioleError, Op, ShapeError, TensorType, Value, learned_levels
from luciole.ir.analysis.weights import (
    Weights,
    input_levels,
    learned_weights,
    weight_constant,
    weights_of,
)
from luciole.ir.dtypes import pack
from luciole.ir.number_format import Affine, Float, LearnedLevels
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected, decoded
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.value import Buffer
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat
from tests.ops.sparsity_support import compressed, solid, sparsity
from tests.support import Affine as Scales
from tests.support import one_op


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def op_of(cls: type[Op], *args: Any, **options: Any) -> Op:
    return one_op(cls, *args, **options).graph.ops[0]


def found(op: Op) -> Weights[Any]:
    weights = weights_of(op)
    assert weights is not None
    return weights


def test_float_weights_are_their_own_codes() -> None:
    filter = random(0, 4, 3, 2, 5)
    weights = found(op_of(Conv2D, [random(1, 1, 8, 8, 5), filter], (1,), stride_w=1, stride_h=1))
    assert weights.format == Float(TensorType.FLOAT32)
    assert weights.shape == (3, 2, 5)
    np.testing.assert_array_equal(weights.values(), filter.reshape(4, -1))


def test_outputs_come_first_whatever_axis_they_are() -> None:
    filter = random(0, 1, 3, 3, 4)
    options = {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    weights = found(op_of(DepthwiseConv2D, [random(1, 1, 8, 8, 4), filter], (1,), **options))
    np.testing.assert_array_equal(weights.values(), filter.reshape(9, 4).T)
    assert weights.shape == (1, 3, 3)


@pytest.mark.parametrize("dtype", [TensorType.INT8, TensorType.INT4])
@pytest.mark.parametrize("scales", [0.5, (0.5, 0.25, 1.0)])
def test_integers_stand_for_scaled_numbers(dtype: TensorType, scales: Any) -> None:
    codes = np.random.default_rng(2).integers(-8, 8, (3, 6)).astype(np.int8)
    model = one_op(FullyConnected, [random(1, 1, 6), codes], (1,), affine=[None, Scales(scales)])
    op = model.graph.ops[0]
    assert op.operands[1] is not None
    op.operands[1].make_constant(codes, dtype)
    weights = found(op)
    assert isinstance(weights.format, Affine)
    assert weights.format.bits == (8 if dtype == TensorType.INT8 else 4)
    np.testing.assert_array_equal(weights.codes, codes)
    wanted = codes * np.broadcast_to(np.reshape(scales, (-1, 1)), codes.shape)
    np.testing.assert_array_equal(weights.values(), wanted)


def test_scales_follow_the_axis_of_outputs_to_the_front() -> None:
    codes = np.ones((1, 2, 2, 3), np.int8)
    scales = Scales((1.0, 2.0, 3.0), (0, 0, 0), 3)
    options = {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1, "affine": [None, scales]}
    weights = found(op_of(DepthwiseConv2D, [random(1, 1, 8, 8, 3), codes], (1,), **options))
    np.testing.assert_array_equal(weights.values(), np.repeat([[1.0], [2.0], [3.0]], 4, 1))


def test_unsigned_bytes_under_a_float_input_are_signed_ones() -> None:
    bytes_ = np.array([[0, 127, 128, 255]], np.uint8)
    op = op_of(FullyConnected, [random(1, 1, 4), bytes_], (1,), affine=[None, Scales(0.5)])
    assert found(op).values().tolist() == [[0, 63.5, -64, -0.5]]


def test_unsigned_bytes_with_a_zero_point_are_what_they_are_called() -> None:
    bytes_ = np.array([[0, 128, 255]], np.uint8)
    grids = [Scales(0.1), Scales(0.5, 128)]
    op = op_of(FullyConnected, [np.zeros((1, 3), np.uint8), bytes_], (1,), affine=grids)
    assert found(op).values().tolist() == [[-64, 0, 63.5]]


def test_sparse_weights_have_all_their_elements() -> None:
    codes = np.array([3, -4, 5], np.int8)
    dense = np.zeros((2, 4), np.int8)
    grids = [None, Scales((0.5, 2.0), (0, 0))]
    op = op_of(FullyConnected, [random(0, 1, 4), dense], (1,), affine=grids)
    value = op.operands[1]
    assert value is not None
    value.buffer = Buffer(pack(codes, TensorType.INT8))
    value.sparsity = sparsity([0, 1], [], solid(2), compressed([0, 2, 3], [0, 3, 1]))
    assert found(op).values().tolist() == [[1.5, 0, 0, -2], [0, 10, 0, 0]]


def levels_operands(shape: tuple[int, ...], kw: int) -> list[Array | None]:
    o, *inner = shape
    words = learned_levels.pack(random(1, o, kw, *inner) > 0)
    return [abs(random(2, 2)), random(3, o, kw), words, None, random(4, o)]


def test_learned_levels_of_a_dense_layer_are_what_its_planes_decode_to() -> None:
    operands = levels_operands((5, 70), 3)
    op = op_of(LQFullyConnected, [random(0, 1, 70), *operands], range(1, 6), hidden_size=70)
    weights = learned_weights(op)
    assert weights is not None
    _, basis, words, _, offsets = operands
    assert basis is not None
    assert words is not None
    assert offsets is not None
    wanted = learned_levels.decode(words, basis, 70, offsets)
    np.testing.assert_allclose(weights.values(), wanted, atol=1e-12)
    np.testing.assert_array_equal(learned_levels.weight_planes(weights.codes, 3), words)
    assert weights.format.bits == 3
    assert found(op).values().tolist() == weights.values().tolist()


def test_learned_levels_of_a_convolution_have_words_for_every_position() -> None:
    operands = levels_operands((3, 2, 3, 40), 2)
    options = {"input_channels": 40, "stride_w": 1, "stride_h": 1}
    op = op_of(LQConv2D, [random(0, 1, 8, 8, 40), *operands], range(1, 6), **options)
    weights = learned_weights(op)
    assert weights is not None
    assert weights.shape == (2, 3, 40)
    planes = learned_levels.weight_planes(weights.codes.reshape(3, 2, 3, 40), 2)
    np.testing.assert_array_equal(planes, operands[2])


def bcq(clusters: list[list[int]], planes: int) -> Op:
    words = learned_levels.pack(random(2, planes, 64) > 0)
    operands = [random(3, 64, 1), random(1, planes), words, None, np.array(clusters, np.int32)]
    return op_of(BCQFullyConnected, operands, (1, 2, 4), weights_hidden_size=64)


def test_planes_of_clusters_are_levels_with_widths_of_their_own() -> None:
    op = bcq([[2, 3], [1, 2]], 8)
    assert isinstance(op, BCQFullyConnected)
    weights = learned_weights(op)
    assert weights is not None
    assert weights.format.widths is not None
    assert weights.format.widths.tolist() == [2, 2, 2, 1, 1]
    scales, words, clusters = (op.weights_scales.data, op.weights_binary.data, op.operands[4])
    assert scales is not None
    assert words is not None
    assert clusters is not None
    assert clusters.data is not None
    wanted = decoded(scales, words, clusters.data, 64)
    np.testing.assert_allclose(weights.values(), wanted, atol=1e-12)


def test_levels_refuses_more_bits_than_can_be_listed() -> None:
    op = bcq([[9, 1]], 9)
    with pytest.raises(ShapeError, match="weights have 9 bits, 1 to 8 are possible"):
        weights_of(op)


@pytest.mark.parametrize("slot", [1, 2, 4])
def test_levels_refuses_constants_of_another_type(slot: int) -> None:
    op = bcq([[2, 3], [1, 2]], 8)
    value = op.operands[slot]
    assert value is not None
    assert value.data is not None
    value.make_constant(value.data.astype(np.complex64))
    with pytest.raises(ShapeError, match=f"operand '{value.name}' is COMPLEX64, not "):
        weights_of(op)


def test_levels_refuses_planes_that_do_not_fit() -> None:
    operands = levels_operands((3, 40), 2)
    op = op_of(LQFullyConnected, [random(0, 1, 40), *operands], range(1, 6), hidden_size=40)
    assert isinstance(op, LQFullyConnected)
    op.hidden_size = 500
    message = "bit planes [3, 2, 2] do not fit bases [3, 2] and rows of 500"
    with pytest.raises(ShapeError, match=re.escape(message)):
        weights_of(op)


def test_weights_refuses_scales_of_another_axis() -> None:
    codes = np.ones((3, 3), np.int8)
    scales = Scales((1.0, 2.0, 3.0), (0, 0, 0), 1)
    op = op_of(FullyConnected, [random(1, 1, 3), codes], (1,), affine=[None, scales])
    with pytest.raises(LucioleError, match="the weights tensor has its scales along axis 1, not 0"):
        weights_of(op)


def test_what_is_computed_plain_or_of_no_layer_has_no_weights() -> None:
    x, w = random(0, 1, 4), random(1, 2, 4)
    assert weights_of(op_of(Add, [x, x])) is None
    assert weights_of(op_of(FullyConnected, [x, w])) is None
    plain = np.ones((2, 4), np.int8)
    assert weights_of(op_of(FullyConnected, [np.ones((1, 4), np.int8), plain], (1,))) is None
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    op = op_of(FullyConnected, [x, w], (1,), weights_format=shuffled)
    assert weights_of(op) is None
    assert isinstance(weight_constant(op), Value)


def test_computed_levels_have_no_weights_and_no_input_levels() -> None:
    operands = levels_operands((3, 40), 2)
    options = {"hidden_size": 40, "input_offset": 0.5}
    for constant, wanted in (((1, 2, 3, 4), False), ((1, 2, 3, 4, 5), True)):
        op = op_of(LQFullyConnected, [random(0, 1, 40), *operands], constant, **options)
        assert (weights_of(op) is not None) == wanted  # the offsets are computed, or not
    levels = input_levels(op)
    assert isinstance(levels, LearnedLevels)
    assert float(levels.offset) == 0.5
    assert (
        input_levels(op_of(LQFullyConnected, [random(0, 1, 40), *operands], (), **options)) is None
    )
    assert input_levels(op_of(Add, [random(0, 2), random(1, 2)])) is None
