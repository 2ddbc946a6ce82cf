"""Networks with channels first: channels last inside, by the numbers that they gave before."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import Model, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes.layout.convert_nchw_to_nhwc import convert_nchw_to_nhwc
from tests.lquantizer.networks import Builder
from tests.networks import random

ENDS = ["nchw_to_nhwc_input_shape", "nchw_to_nhwc_output_shape"]


def channels_first() -> Model:
    """A scale, a convolution between TRANSPOSE, and a sum with another input."""
    b = Builder()
    x, other = b.graph.add_input("x", (1, 3, 6, 5)), b.graph.add_input("other", (1, 3, 6, 5))
    scaled = b.add(Mul(x, b.constant(random(1, 1, 3, 1, 1))))
    image = b.add(Transpose(scaled, b.constant(np.array([0, 2, 3, 1], np.int32))))
    conv = Conv2D(image, b.constant(random(2, 3, 1, 1, 3)), None, stride_h=1, stride_w=1)
    back = b.add(Transpose(b.add(conv), b.constant(np.array([0, 3, 1, 2], np.int32))))
    b.graph.outputs = [b.add(Add(b.add(Abs(back)), other))]
    return b.model


@pytest.mark.parametrize("others", [[], ["o1"], ["sink_transposes"]])
def test_channels_are_last_inside_and_first_at_the_ends(others: list[str]) -> None:
    model = channels_first()
    made = luciole.optimize(model, [*others, "convert_nchw_to_nhwc"])
    inner = [op.output.dims for op in made.graph.ops if not isinstance(op, Transpose)]
    assert set(inner) == {(1, 6, 5, 3)}
    assert sum(isinstance(op, Transpose) for op in made.graph.ops) == 3
    ends = [(v.name, v.dims) for v in (*made.graph.inputs, *made.graph.outputs)]
    assert ends == [(v.name, v.dims) for v in (*model.graph.inputs, *model.graph.outputs)]
    data = {"x": random(3, 1, 3, 6, 5), "other": random(4, 1, 3, 6, 5)}
    (before,), (after,) = (luciole.Interpreter(m).run(data).values() for m in (model, made))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_inputs_and_outputs_are_turned_on_request_in_any_order_of_names() -> None:
    for names in ([*ENDS, "convert_nchw_to_nhwc"], ["convert_nchw_to_nhwc", *reversed(ENDS)]):
        model = channels_first()
        made = luciole.optimize(model, names)
        assert not any(isinstance(op, Transpose) for op in made.graph.ops)
        data = {"x": random(3, 1, 3, 6, 5), "other": random(4, 1, 3, 6, 5)}
        (before,) = luciole.Interpreter(model).run(data).values()
        turned = {name: np.moveaxis(array, 1, -1).copy() for name, array in data.items()}
        (after,) = luciole.Interpreter(made).run(turned).values()
        np.testing.assert_allclose(np.moveaxis(after, -1, 1), before, rtol=1e-5, atol=1e-6)


def one_channel() -> Model:
    """A convolution to one channel, whose image a RESHAPE turns, a scale, and another one."""
    b = Builder()

    def ints(*numbers: int) -> Value:
        return b.constant(np.array(numbers, np.int32))

    image = b.add(Transpose(b.graph.add_input("x", (1, 3, 6, 5)), ints(0, 2, 3, 1)))
    conv = Conv2D(image, b.constant(random(2, 1, 1, 1, 3)), None, stride_h=1, stride_w=1)
    back = b.add(Reshape(b.add(conv), ints(1, 1, 6, 5), new_shape=(1, 1, 6, 5)))
    scaled = b.add(Mul(back, b.constant(random(3, 1, 1, 1, 1))))
    turned = b.add(Reshape(scaled, ints(1, 6, 5, 1), new_shape=(1, 6, 5, 1)))
    last = Conv2D(turned, b.constant(random(4, 2, 1, 1, 1)), None, stride_h=1, stride_w=1)
    b.graph.outputs = [b.add(Transpose(b.add(last), ints(0, 3, 1, 2)))]
    return b.model


def test_reshapes_that_turn_images_of_one_channel_go() -> None:
    model = one_channel()
    made = luciole.optimize(model, [*ENDS, "convert_nchw_to_nhwc", "fuse_mul_with_conv"])
    assert [op.kind for op in made.graph.ops] == ["CONV_2D", "CONV_2D"]
    x = random(5, 1, 3, 6, 5)
    (before,) = luciole.Interpreter(model).run({"x": x}).values()
    (after,) = luciole.Interpreter(made).run({"x": np.moveaxis(x, 1, -1).copy()}).values()
    np.testing.assert_allclose(np.moveaxis(after, -1, 1), before, rtol=1e-5, atol=1e-6)


def test_a_second_time_changes_nothing() -> None:
    graph = channels_first().graph
    assert convert_nchw_to_nhwc(graph)
    names = [value.name for value in graph.values]
    assert not convert_nchw_to_nhwc(graph)
    assert [value.name for value in graph.values] == names


def test_layers_that_read_an_input_as_it_is_stay_as_they_are() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4, 4, 3))
    conv = Conv2D(x, b.constant(random(2, 3, 1, 1, 3)), None, stride_h=1, stride_w=1)
    b.graph.outputs = [b.add(conv)]
    assert not convert_nchw_to_nhwc(b.graph)
