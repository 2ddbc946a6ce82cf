"""BIDIRECTIONAL_SEQUENCE_RNN: three runs against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Model, ShapeError
from luciole.ir.ops.bidirectional_sequence_rnn import BidirectionalSequenceRNN
from luciole.schema.enums import ActivationFunctionType
from tests.recurrent_support import Shapes, check_runs, layer, outputs_here, sequences


def shapes(other: str = "", time_major: bool = False) -> dict[str, tuple[int, ...]]:
    """Of all operands; ``other`` is "weighed", "crossed" or nothing."""
    time = (6, 3) if time_major else (3, 6)
    found: dict[str, tuple[int, ...]] = {"input": (*time, 5)}
    for way, n in (("fw", 4), ("bw", 3)):
        found[f"{way}_weights"] = (n, 5)
        found[f"{way}_recurrent_weights"] = (n, n)
        found[f"{way}_bias"] = (n,)
        found[f"{way}_hidden_state"] = (3, n)
        if other == "weighed":
            found[f"{way}_aux_weights"] = (n, 5)
    return found | ({"aux_input": (*time, 5)} if other else {})


def rnn(given: Shapes, hybrid: bool = False, **attributes: Any) -> Model:
    attributes = {"activation": ActivationFunctionType.TANH, **attributes}
    inputs = ("input", "aux_input")
    return layer(BidirectionalSequenceRNN, given, inputs, hybrid, **attributes)


@pytest.mark.parametrize(
    ("other", "time_major"),
    [("", False), ("", True), ("weighed", False), ("weighed", True), ("crossed", True)],
)
@pytest.mark.parametrize("merged", [False, True])
def test_three_runs_are_those_of_litert(other: str, time_major: bool, merged: bool) -> None:
    given = shapes(other, time_major)
    check_runs(rnn(given, time_major=time_major, merge_outputs=merged))


# LiteRT gives the second direction the first input unless time comes first.
def test_a_second_input_does_not_depend_on_the_order_of_axes() -> None:
    batches, times = (rnn(shapes("crossed", t), time_major=t) for t in (False, True))
    ((x, other),) = sequences(batches, 1)
    ours = outputs_here(batches, [[x, other]])[0]
    turned = outputs_here(times, [[x.swapaxes(0, 1), other.swapaxes(0, 1)]])[0]
    for a, b in zip(ours, turned, strict=True):
        np.testing.assert_array_equal(a, b.swapaxes(0, 1))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("other", ["", "weighed"])
def test_integer_weights_are_those_of_litert(other: str, asymmetric: bool) -> None:
    check_runs(rnn(shapes(other), True, asymmetric_quantize_inputs=asymmetric))


def test_relu_runs_are_those_of_litert() -> None:
    check_runs(rnn(shapes(), activation=ActivationFunctionType.RELU))


def test_unknown_extents() -> None:
    op = rnn(shapes()).graph.ops[0]
    assert op.operands[0] is not None
    op.operands[0].shape = (3, None, 5)
    assert op.result_shapes() == ((3, None, 4), (3, None, 3))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("bw_weights", (3, 6), r"weights has shape \[3,6\], \[units 3, inputs 5\] is needed"),
        ("fw_hidden_state", (2, 4), r"hidden_state has shape \[2,4\], \[batch 3, units 4\]"),
        ("aux_input", (3, 5, 5), "axis 1: the auxillary input has 5, input has 6"),
        ("bw_aux_weights", (3, 3), r"aux_weights has shape \[3,3\], \[units 3, auxillary inputs 5"),
    ],
)
def test_bidirectional_rnn_refuses_shapes_that_do_not_fit(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    op = rnn(shapes("weighed")).graph.ops[0]
    value = dict(op.named_operands())[name]
    assert value is not None
    value.shape = shape
    with pytest.raises(ShapeError, match=message):
        op.result_shapes()


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("aux_input", "there are weights for an auxillary input, and no such input"),
        ("bw_aux_weights", "aux_weights is absent"),
    ],
)
def test_bidirectional_rnn_refuses_half_of_a_set_of_operands(left_out: str, message: str) -> None:
    given = {name: s for name, s in shapes("weighed").items() if name != left_out}
    with pytest.raises(ShapeError, match=message):
        rnn(given)


def test_bidirectional_rnn_refuses_states_that_are_no_variables() -> None:
    op = rnn(shapes()).graph.ops[0]
    value = dict(op.named_operands())["fw_hidden_state"]
    assert value is not None
    value.is_variable = False
    assert list(op.verify()) == [
        "fw_hidden_state 'fw_hidden_state' is not a variable tensor: it must be one"
    ]
