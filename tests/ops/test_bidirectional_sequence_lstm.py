"""BIDIRECTIONAL_SEQUENCE_LSTM: three runs against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Model, ShapeError
from luciole.ir.ops.bidirectional_sequence_lstm import BidirectionalSequenceLSTM
from luciole.ir.recurrent import LSTM_AUXILIARY, NORMS
from luciole.schema.enums import ActivationFunctionType
from tests.lstm_support import PARTS, lstm_shapes
from tests.recurrent_support import Shapes, check_runs, layer, outputs_here, sequences

OTHER = "auxillary_input"
VARIANTS = ["plain", "no input gate", "peepholes", "projected", "projected without bias"]


def shapes(
    part: str = "plain", other: str = "", time_major: bool = True
) -> dict[str, tuple[int, ...]]:
    """Of all operands; ``other`` is "weighed", "crossed" or nothing."""
    left_out = (*PARTS[part], *NORMS, *(() if other == "weighed" else LSTM_AUXILIARY))
    time = (6, 3) if time_major else (3, 6)
    found: dict[str, tuple[int, ...]] = {"input": (*time, 5)}
    for way in ("fw", "bw"):
        for name, shape in lstm_shapes(left_out).items():
            found[f"{way}_{name.replace('output_state', 'activation_state')}"] = shape
    return found | ({OTHER: (*time, 5)} if other else {})


def lstm(given: Shapes, hybrid: bool = False, **attributes: Any) -> Model:
    attributes = {"activation": ActivationFunctionType.TANH, **attributes}
    inputs = ("input", OTHER)
    return layer(BidirectionalSequenceLSTM, given, inputs, hybrid, **attributes)


@pytest.mark.parametrize("part", VARIANTS)
@pytest.mark.parametrize("merged", [False, True])
def test_three_runs_are_those_of_litert(part: str, merged: bool) -> None:
    check_runs(lstm(shapes(part), merge_outputs=merged))


@pytest.mark.parametrize("other", ["weighed", "crossed"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("hybrid", [False, True])
def test_auxiliary_inputs_are_those_of_litert(other: str, time_major: bool, hybrid: bool) -> None:
    check_runs(lstm(shapes("plain", other, time_major), hybrid, time_major=time_major))


def test_clipped_runs_are_those_of_litert() -> None:
    check_runs(lstm(shapes("projected"), cell_clip=0.3, proj_clip=0.1))


@pytest.mark.parametrize("part", VARIANTS)
@pytest.mark.parametrize("asymmetric", [False, True])
def test_integer_weights_are_those_of_litert(part: str, asymmetric: bool) -> None:
    check_runs(lstm(shapes(part), True, asymmetric_quantize_inputs=asymmetric))


def test_the_second_direction_is_the_first_of_a_sequence_turned() -> None:
    model = lstm(shapes())
    op = model.graph.ops[0]
    for name, value in op.named_operands():
        if name.startswith("bw_") and value is not None and value.is_constant:
            same = dict(op.named_operands())[name.replace("bw_", "fw_")]
            assert same is not None
            assert same.data is not None
            value.set_data(same.data)
    ((x,),) = sequences(model, 1)
    (_, back), (ahead, _) = (outputs_here(model, [[a]])[0] for a in (x, x[::-1]))
    np.testing.assert_array_equal(back, ahead[::-1])


def test_unknown_extents() -> None:
    op = lstm(shapes()).graph.ops[0]
    assert op.operands[0] is not None
    op.operands[0].shape = (None, 3, 5)
    assert op.result_shapes() == ((None, 3, 4), (None, 3, 4))
    assert isinstance(op, BidirectionalSequenceLSTM)
    op.merge_outputs = True
    assert op.result_shapes() == ((None, 3, 8),)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("bw_cell_state", (2, 4), r"cell_state has shape \[2,4\], \[batch 3, cells 4\] is needed"),
        ("fw_input_to_cell_weights", (4, 6), r"has shape \[4,6\], \[cells 4, inputs 5\] is needed"),
        (OTHER, (6, 2, 5), "axis 1: the auxillary input has 2, input has 3"),
        (
            "bw_auxillary_input_to_cell_weights",
            (4, 3),
            r"has shape \[4,3\], \[cells 4, auxillary inputs 5\] is needed",
        ),
    ],
)
def test_bidirectional_lstm_refuses_shapes_that_do_not_fit(
    name: str, shape: tuple[int, ...], message: str
) -> None:
    op = lstm(shapes(other="weighed")).graph.ops[0]
    value = dict(op.named_operands())[name]
    assert value is not None
    value.shape = shape
    with pytest.raises(ShapeError, match=message):
        op.result_shapes()


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        (OTHER, "there are weights for an auxillary input, and no such input"),
        ("bw_auxillary_input_to_cell_weights", "auxillary_input_to_cell_weights is absent"),
        ("bw_input_to_input_weights", "input_to_input_weights is absent and recurrent_to_input"),
    ],
)
def test_bidirectional_lstm_refuses_half_of_a_set_of_operands(left_out: str, message: str) -> None:
    given = {name: s for name, s in shapes(other="weighed").items() if name != left_out}
    with pytest.raises(ShapeError, match=message):
        lstm(given)


def test_bidirectional_lstm_refuses_bad_clips_and_states_that_are_no_variables() -> None:
    op = lstm(shapes(), cell_clip=-1.0).graph.ops[0]
    value = dict(op.named_operands())["bw_cell_state"]
    assert value is not None
    value.is_variable = False
    assert list(op.verify()) == [
        "cell_clip is -1.0; it must be 0 (no clipping) or positive",
        "bw_cell_state 'bw_cell_state' is not a variable tensor: it must be one",
    ]
