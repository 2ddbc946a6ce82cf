"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN: three runs against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import LucioleError, Model, Op, ShapeError, UnsupportedError
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.schema.enums import ActivationFunctionType
from tests.recurrent_support import check_runs, layer, outputs_here, sequences
from tests.support import Affine

PARAMETERS: dict[str, tuple[int, ...]] = {
    "weights": (4, 5),
    "recurrent_weights": (4, 4),
    "bias": (4,),
    "hidden_state": (3, 4),
}
ACTIVATIONS = [
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.TANH,
]
BOTH = pytest.mark.parametrize("cls", [RNN, UnidirectionalSequenceRNN])


def rnn(cls: type[Op], hybrid: bool = False, **attributes: Any) -> Model:
    attributes = {"activation": ActivationFunctionType.TANH, **attributes}
    sequence = (6, 3, 5) if attributes.get("time_major") else (3, 6, 5)
    shapes = {"input": (3, 5) if cls is RNN else sequence, **PARAMETERS}
    return layer(cls, shapes, hybrid=hybrid, **attributes)


@BOTH
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_three_runs_are_those_of_litert(cls: type[Op], activation: ActivationFunctionType) -> None:
    check_runs(rnn(cls, activation=activation))


@pytest.mark.parametrize("hybrid", [False, True])
def test_time_major_runs_are_those_of_litert(hybrid: bool) -> None:
    check_runs(rnn(UnidirectionalSequenceRNN, hybrid, time_major=True))


@BOTH
@pytest.mark.parametrize("asymmetric", [False, True])
def test_integer_weights_are_those_of_litert(cls: type[Op], asymmetric: bool) -> None:
    check_runs(rnn(cls, True, asymmetric_quantize_inputs=asymmetric))


def test_a_sequence_is_its_steps() -> None:
    model, single = rnn(UnidirectionalSequenceRNN), rnn(RNN)
    runs = sequences(model, 1)
    (whole,) = outputs_here(model, runs)[0]
    steps = outputs_here(single, [[runs[0][0][:, t]] for t in range(6)])
    np.testing.assert_array_equal(whole, np.stack([step for (step,) in steps], axis=1))


def test_unknown_extents() -> None:
    model = rnn(UnidirectionalSequenceRNN)
    model.graph.inputs[0].shape = (None, None, 5)
    for value in model.graph.values:
        if value.is_variable:
            value.shape = (None, 4)
    assert model.graph.ops[0].result_shapes() == ((None, None, 4),)


@BOTH
@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("weights", (4, 6), r"weights has shape \[4,6\], \[units 4, inputs 5\] is needed"),
        ("recurrent_weights", (4, 3), r"recurrent_weights has shape \[4,3\], \[units 4, units 4\]"),
        ("bias", (5,), r"bias has shape \[5\], \[units 4\] is needed"),
        ("hidden_state", (2, 4), r"hidden_state has shape \[2,4\], \[batch 3, units 4\] is needed"),
        ("input", (5,), r"input has shape \[5\], rank"),
    ],
)
def test_rnn_refuses_shapes_that_do_not_fit(
    cls: type[Op], name: str, shape: tuple[int, ...], message: str
) -> None:
    op = rnn(cls).graph.ops[0]
    value = dict(op.named_operands())[name]
    assert value is not None
    value.shape = shape
    with pytest.raises(ShapeError, match=message):
        op.result_shapes()


@BOTH
def test_rnn_refuses_states_that_are_no_variables(cls: type[Op]) -> None:
    op = rnn(cls).graph.ops[0]
    value = dict(op.named_operands())["hidden_state"]
    assert value is not None
    value.is_variable = False
    assert list(op.verify()) == [
        "hidden_state 'hidden_state' is not a variable tensor: it must be one"
    ]


@BOTH
def test_rnn_refuses_other_weights(cls: type[Op]) -> None:
    model = rnn(cls)
    value = dict(model.graph.ops[0].named_operands())["weights"]
    assert value is not None
    value.make_constant(np.zeros((4, 5), np.float16))
    with pytest.raises(UnsupportedError, match="weights is float16, float32 or int8 is needed"):
        outputs_here(model, sequences(model, 1))


@BOTH
@pytest.mark.parametrize(
    ("affine", "message"),
    [
        (None, "weights tensor has no"),
        (Affine(0.1, 3), r"has zero points \[3\]; 0 is needed"),
        (Affine([0.1] * 4, [0] * 4), "weights has 4 scales, one is needed"),
    ],
)
def test_rnn_refuses_integer_weights_without_one_scale(
    cls: type[Op], affine: Affine | None, message: str
) -> None:
    model = rnn(cls, True)
    value = dict(model.graph.ops[0].named_operands())["weights"]
    assert value is not None
    value.quantization = None
    if affine is not None:
        affine.give(value)
    with pytest.raises(LucioleError, match=message):
        outputs_here(model, sequences(model, 1))


def test_rnn_refuses_an_activation_without_meaning() -> None:
    model = rnn(RNN, activation=ActivationFunctionType.SIGN_BIT)
    with pytest.raises(LucioleError, match="SIGN_BIT is not supported for float32"):
        outputs_here(model, sequences(model, 1))
