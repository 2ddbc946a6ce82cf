"""LSTM: three runs against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import import_model
from luciole.ir import (
    Array,
    Graph,
    LucioleError,
    Model,
    Op,
    ShapeError,
    TensorType,
    UnknownOp,
    UnsupportedError,
    Value,
)
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import LSTM_AUXILIARY
from luciole.ir.verify import Severity
from luciole.kernels.core import registry
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, LSTMKernelType
from luciole.schema.tables import LSTMOptions
from tests.lstm_support import PARTS, integer_lstm, lstm_shapes
from tests.recurrent_support import (
    check_runs,
    layer,
    outputs_here,
    outputs_in_litert,
    outputs_of_plan,
    sequences,
)
from tests.support import Affine

BOTH = pytest.mark.parametrize("cls", [LSTM, UnidirectionalSequenceLSTM])


def lstm(cls: type[Op] = LSTM, part: str = "plain", hybrid: bool = False, **given: Any) -> Model:
    given = {"activation": ActivationFunctionType.TANH, **given}
    shapes = lstm_shapes((*PARTS[part], *LSTM_AUXILIARY))
    first = {"input": (3, 5) if cls is LSTM else (3, 6, 5)}
    return layer(cls, first | shapes, hybrid=hybrid, **given)


@pytest.mark.parametrize("part", PARTS)
def test_three_runs_are_those_of_litert(part: str) -> None:
    check_runs(lstm(part=part))


@pytest.mark.parametrize("activation", [ActivationFunctionType.RELU, ActivationFunctionType.RELU6])
def test_clipped_runs_are_those_of_litert(activation: ActivationFunctionType) -> None:
    check_runs(lstm(part="everything", activation=activation, cell_clip=0.3, proj_clip=0.2))


@BOTH
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("asymmetric", [False, True])
def test_integer_weights_are_those_of_litert(cls: type[Op], part: str, asymmetric: bool) -> None:
    check_runs(lstm(cls, part, True, asymmetric_quantize_inputs=asymmetric))


@pytest.mark.parametrize("part", PARTS)
def test_a_sequence_is_its_steps(part: str) -> None:
    model, single = lstm(UnidirectionalSequenceLSTM, part), lstm(LSTM, part)
    runs = sequences(model, 1)
    (whole,) = outputs_here(model, runs)[0]
    steps = outputs_here(single, [[runs[0][0][:, t]] for t in range(6)])
    np.testing.assert_array_equal(whole, np.stack([step for (step,) in steps], axis=1))


def test_unknown_extents() -> None:
    model = lstm()
    model.graph.inputs[0].shape = (None, 5)
    for value in model.graph.values:
        if value.is_variable:
            value.shape = (None, 4)
    assert model.graph.ops[0].result_shapes() == ((None, 4),)


def test_lstm_refuses_sequences() -> None:
    model = lstm()
    model.graph.inputs[0].shape = (3, 6, 5)
    with pytest.raises(ShapeError, match=r"input has shape \[3,6,5\], rank 2 is needed"):
        model.graph.ops[0].result_shapes()


def test_lstm_refuses_the_basic_kernel() -> None:
    model = lstm(kernel_type=LSTMKernelType.BASIC)
    with pytest.raises(LucioleError, match="kernel_type is BASIC, FULL is needed for these"):
        outputs_here(model, sequences(model, 1))


def test_lstm_refuses_the_operands_of_the_basic_kernel_and_keeps_them() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    shapes = [(1, 2), (1, 3), (12, 5), (12,), (1, 3)]
    inputs = [graph.add_input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    options = LSTMOptions(kernel_type=LSTMKernelType.BASIC)
    op = UnknownOp(BuiltinOperator.LSTM, inputs, options_table=options)
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (1, 3)))])
    again, findings = import_model(to_bytes(model))
    kept = again.graph.ops[0]
    assert isinstance(kept, UnknownOp)
    assert kept.reason == "kernel_type is BASIC, only FULL is understood"
    assert [f.severity for f in findings] == [Severity.WARNING]
    with pytest.raises(UnsupportedError, match=r"LSTM is not supported .kernel_type is BASIC"):
        registry.find_reference(kept)


def test_lstm_refuses_integer_diagonals() -> None:
    model = lstm(UnidirectionalSequenceLSTM, hybrid=True)
    op = model.graph.ops[0]
    assert isinstance(op, UnidirectionalSequenceLSTM)
    op.diagonal_recurrent_tensors = True
    for name, value in op.named_operands():
        if value is not None and name.startswith("recurrent_to_"):
            value.make_constant(np.ones(4, np.int8))
    with pytest.raises(UnsupportedError, match="diagonals of recurrent weights are float32 here"):
        outputs_here(model, sequences(model, 1))


@pytest.mark.parametrize("name", ["output_state", "cell_state"])
def test_lstm_refuses_states_that_are_no_variables(name: str) -> None:
    op = lstm().graph.ops[0]
    value = dict(op.named_operands())[name]
    assert value is not None
    value.is_variable = False
    assert list(op.verify()) == [f"{name} {name!r} is not a variable tensor: it must be one"]


def test_lstm_refuses_half_of_the_peepholes() -> None:
    left_out = (*PARTS["plain"], *LSTM_AUXILIARY)
    shapes = lstm_shapes([n for n in left_out if n != "cell_to_output_weights"])
    with pytest.raises(ShapeError, match="cell_to_input_weights is absent and cell_to_output"):
        layer(LSTM, {"input": (3, 5), **shapes})


# ------------------------------------------------------------------------------------- integers
def integer_runs(model: Model) -> list[list[Array]]:
    random, shape = np.random.default_rng(6), model.graph.inputs[0].dims
    return [[random.integers(-128, 128, shape).astype(np.int8)] for _ in range(6)]


@BOTH
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.5, 0.3)])
def test_integer_runs_are_those_of_litert(
    cls: type[Op], part: str, clips: tuple[float, float]
) -> None:
    model = integer_lstm(cls, part, cell_clip=clips[0], proj_clip=clips[1])
    runs = integer_runs(model)
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert len(np.unique(np.stack([a for (a,) in ours]))) > 20


@pytest.mark.parametrize("hidden", [Affine(0.006, 11), Affine(0.006, -11), Affine(0.01, 50)])
def test_integers_before_a_projection_are_those_of_litert(hidden: Affine) -> None:
    model = integer_lstm(part="projected", hidden=hidden)
    runs = integer_runs(model)
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@BOTH
def test_gates_of_large_variance_are_those_of_litert(cls: type[Op]) -> None:
    model, random = integer_lstm(cls, "normalized"), np.random.default_rng(0)
    for value in model.graph.ops[0].intermediates[:4]:
        Affine(2e-5).give(value)  # so fine that gates reach the ends of INT16: 2^29 and more
    shape = model.graph.inputs[0].dims
    runs = [[random.choice([-128, 127], shape).astype(np.int8)] for _ in range(3)]
    ours, theirs = outputs_of_plan(model, runs), outputs_in_litert(model, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_lstm_refuses_integers_with_another_activation() -> None:
    model = integer_lstm(activation=ActivationFunctionType.RELU)
    with pytest.raises(UnsupportedError, match="fused activation RELU is not TANH"):
        outputs_of_plan(model, integer_runs(model))


def test_lstm_refuses_integers_without_intermediate_tensors() -> None:
    model = integer_lstm()
    model.graph.ops[0].intermediates = ()
    with pytest.raises(LucioleError, match="there are 0 intermediate tensors, 5 are needed for"):
        outputs_of_plan(model, integer_runs(model))


@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-16, 0.003])
def test_lstm_refuses_integers_with_other_scales_of_cells(scale: float) -> None:
    model = integer_lstm()
    value = dict(model.graph.ops[0].named_operands())["cell_state"]
    assert value is not None
    Affine(scale).give(value)
    with pytest.raises(LucioleError, match=r"cell_state has scale .*, 2\^-15 to 2\^-9 is needed"):
        outputs_of_plan(model, integer_runs(model))


def test_lstm_refuses_integers_with_real_weights() -> None:
    model = integer_lstm()
    value = dict(model.graph.ops[0].named_operands())["input_to_cell_weights"]
    assert value is not None
    value.make_constant(np.zeros((4, 5), np.float32))
    with pytest.raises(UnsupportedError, match="input_to_cell_weights is float32, int8 is needed"):
        outputs_of_plan(model, integer_runs(model))
