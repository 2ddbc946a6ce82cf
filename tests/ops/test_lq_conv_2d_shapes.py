"""Shapes of LQ_CONV_2D, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import LucioleError, ShapeError, TensorType
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.verify import verify
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.lq_conv_support import ConvLayer, random_conv
from tests.lq_support import random_input
from tests.support import one_op


@pytest.mark.parametrize(
    ("padding", "strides", "dilations", "wanted"),
    [
        (Padding.SAME, (1, 1), (1, 1), (2, 9, 8, 7)),
        (Padding.SAME, (2, 3), (1, 1), (2, 5, 3, 7)),
        (Padding.VALID, (1, 1), (1, 1), (2, 7, 7, 7)),
        (Padding.VALID, (2, 2), (2, 3), (2, 3, 3, 7)),
    ],
)
def test_the_result_has_the_windows_extents(
    padding: Padding,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    wanted: tuple[int, ...],
) -> None:
    window: dict[str, Any] = {"padding": padding, "strides": strides, "dilations": dilations}
    model = random_conv((3, 2), 40, 7, 2, 3, **window).model(random_input((2, 9, 8, 40)))
    assert model.graph.outputs[0].shape == wanted
    assert model.graph.outputs[0].dtype == TensorType.FLOAT32


def test_unknown_extents_stay_unknown() -> None:
    model = random_conv((3, 2), 40, 7, 2, 3).model(random_input((1, 4, 4, 40)))
    model.graph.inputs[0].shape = (None, None, 4, None)
    assert model.graph.ops[0].infer_shape() == (None, None, 4, 7)


@pytest.mark.parametrize("shape", [(0, 4, 4, 40), (1, 0, 4, 40), (1, 4, 0, 40)])
def test_an_empty_image_gives_an_empty_result(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    y = Interpreter(random_conv((3, 2), 40, 7, 3, 2).model(x)).run(x)["y0"]
    assert y.shape == (*shape[:3], 7)


def changed(**arrays: Any) -> ConvLayer:
    """A layer [o = 7, kw = 3, 3 x 2 x 40] with some arrays replaced."""
    return replace(random_conv((3, 2), 40, 7, 2, 3), **arrays)


SHAPE = (1, 4, 4, 40)


@pytest.mark.parametrize(
    ("layer", "shape", "sentence"),
    [
        (changed(), (1, 4, 4, 41), "channels: input has 41, input_channels has 40"),
        (changed(), (4, 4, 40), r"input has shape \[4,4,40\], rank 4 is needed"),
        (changed(input_scales=np.ones((1, 2), np.float32)), SHAPE, "input_scales has shape"),
        (changed(input_scales=np.ones(9, np.float32)), SHAPE, "9 input bits, 1 to 8 are"),
        (changed(input_scales=np.ones(0, np.float32)), SHAPE, "0 input bits, 1 to 8 are"),
        (changed(weights_scales=np.ones(7, np.float32)), SHAPE, "weights_scales has shape"),
        (changed(weights_scales=np.ones((7, 5), np.float32)), SHAPE, "5 weight bits, 1 to 4"),
        (changed(weights_scales=np.ones((7, 2), np.float32)), SHAPE, "weight bits: "),
        (changed(weights_scales=np.ones((6, 3), np.float32)), SHAPE, "outputs: weights_binary"),
        (changed(bias=np.ones(6, np.float32)), SHAPE, "outputs: bias has 6, weights_scales has"),
        (changed(bias=np.ones((1, 7), np.float32)), SHAPE, "bias has shape"),
        (changed(weights_offsets=np.ones(8, np.float32)), SHAPE, "outputs: weights_offsets"),
        (changed(strides=(0, 1)), SHAPE, "stride is 0 and dilation 1, both must be at least 1"),
        (changed(dilations=(1, 0)), SHAPE, "stride is 1 and dilation 0, both must be at least 1"),
        (
            changed(padding=Padding.VALID),
            (1, 2, 4, 40),
            "a window of 3 with dilation 1 does not fit into 2",
        ),
    ],
)
def test_lq_conv_2d_refuses_operands_that_do_not_fit(
    layer: ConvLayer, shape: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ShapeError, match=sentence):
        layer.model(np.zeros(shape, np.float32))


def test_lq_conv_2d_refuses_weights_without_kernel_positions() -> None:
    operands = changed().operands(np.zeros(SHAPE, np.float32))
    attributes = changed().attributes()
    assert operands[3] is not None
    for binary, sentence in (
        (operands[3].reshape(7, 3, 12), r"weights_binary has shape \[7,3,12\], rank 5 is needed"),
        (operands[3][:, :, :0], "the window's extent is 0, it must be at least 1"),
    ):
        with pytest.raises(ShapeError, match=sentence):
            one_op(LQConv2D, [*operands[:3], binary], (1, 2, 3), **attributes)


@pytest.mark.parametrize("channels", [72, 96, 0, -1])
def test_lq_conv_2d_refuses_words_that_do_not_fit_the_channels(channels: int) -> None:
    operands = changed().operands(np.zeros((1, 4, 4, max(channels, 0)), np.float32))
    attributes = changed().attributes() | {"input_channels": channels}
    sentence = f"words: weights_binary has 2, input_channels {channels}|channels: input has 0"
    with pytest.raises(ShapeError, match=sentence):
        one_op(LQConv2D, operands, (1, 2, 3), **attributes)


def test_verify_refuses_fewer_than_one_channel() -> None:
    op = changed().model(random_input(SHAPE)).graph.ops[0]
    assert list(op.verify()) == []
    op.input_channels = 0  # type: ignore[attr-defined]  # the operator's own attribute
    assert list(op.verify()) == ["input_channels is 0, it must be at least 1"]


def test_verify_refuses_planes_that_are_not_int32() -> None:
    model = changed().model(random_input(SHAPE))
    binary = model.graph.ops[0].operands[3]
    assert binary is not None
    assert verify(model) == []
    binary.dtype = TensorType.UINT32
    assert [f.code for f in verify(model)] == ["OPERAND_TYPE"]


def test_running_refuses_an_activation_without_kernel() -> None:
    layer = replace(random_conv((1, 1), 4, 2, 2, 2), activation=Act.SIGN_BIT)
    x = random_input((1, 2, 2, 4))
    with pytest.raises(LucioleError, match=r"LQConv2D 'y0': .*SIGN_BIT is not supported"):
        Interpreter(layer.model(x)).run(x)
