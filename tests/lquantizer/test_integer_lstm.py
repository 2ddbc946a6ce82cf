"""LSTMs that compute with integers throughout: what calibration finds inside of them, and that the
file is what LiteRT's reference kernels compute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Model, Op, TensorType
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.quantization import Affine
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.recurrent import inner_tensors, seen_inside
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lstm_support import PARTS, lstm_shapes
from tests.recurrent_support import layer, outputs_in_litert, outputs_of_plan
from tests.support import data_path

FITTING = [name for name in PARTS if not name.startswith("everything")]
STATES = ("output_state", "cell_state")
RECORDS = 24


def network(cls: type[Op] = UnidirectionalSequenceLSTM, part: str = "plain", **given: Any) -> Model:
    given = {"activation": Act.TANH, **given}
    left_out = [n for n in lstm_shapes(()) if n.startswith("auxillary")]
    times = () if cls is LSTM else (6,)
    order = (*times, 1) if given.get("time_major") else (1, *times)
    shapes = lstm_shapes((*PARTS[part], *left_out), batch=1)
    return layer(cls, {"input": (*order, 5), **shapes}, **given)


def data(model: Model, count: int = RECORDS) -> dict[str, Array]:
    (value,) = model.graph.inputs
    shape = value.dims[1:] if value.dims[0] == 1 else value.dims
    return {value.name: np.random.default_rng(3).normal(size=(count, *shape)).astype(np.float32)}


def lstm_of(model: Model) -> LSTMLayer:
    (op,) = [op for op in model.graph.ops if isinstance(op, LSTMLayer)]
    return op


def made(model: Model, **options: Any) -> luciole.Result:
    return luciole.quantize(model, data(model), scheme="int8", proof=False, **options)


def check_types(op: LSTMLayer, part: str) -> None:
    """Every operand has the element type of TFLite's 8x8_16 kernels."""
    for name, value in op.given_operands().items():
        is_short = name == "cell_state" or name.startswith("cell_to_")
        wanted = TensorType.INT8
        if name.endswith("bias"):
            wanted = TensorType.INT32
        elif is_short or name.endswith("coefficients"):
            wanted = TensorType.INT16
        assert value.dtype == wanted, name
        assert Affine.given(value) is not None, name
    scales = [float(Affine.of(value, "inside").scale[0]) for value in op.intermediates]
    assert len(scales) == 5
    assert (scales[1] == 2.0**-12) == ("normalized" not in part)


@pytest.mark.parametrize("cls", [LSTM, UnidirectionalSequenceLSTM])
@pytest.mark.parametrize("part", FITTING)
def test_files_are_what_litert_computes(cls: type[Op], part: str) -> None:
    model = network(cls, part)
    result = made(model)
    assert result.report.floats == []
    check_types(lstm_of(result.model), part)
    read = from_bytes(to_bytes(result.model, "tflite"))
    runs = [[x[None]] for x in next(iter(data(model, 4).values()))]
    ours, theirs = outputs_of_plan(read, runs), outputs_in_litert(read, runs)
    for (a,), (b,) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    found, wanted = (np.concatenate([answers(m, x) for (x,) in runs]) for m in (read, model))
    assert np.abs(found - wanted).max() < 0.05 * max(1.0, float(np.abs(wanted).max()))


def test_sequences_with_times_first_are_the_others_turned() -> None:
    model, turned = network(), network(time_major=True)
    given = data(model)
    (x,) = given.values()
    first = luciole.quantize(model, given, scheme="int8", proof=False)
    second = luciole.quantize(turned, {"input": x[:, :, None]}, scheme="int8", proof=False)
    found = [r.ranges.tensors["cell_state"] for r in (first, second) if r.ranges]
    assert len(found) == 2
    assert found[0].high == pytest.approx(found[1].high)
    a, b = answers(first.model, x[:1]), answers(second.model, x[:1])
    np.testing.assert_array_equal(a[0], b[:, 0])


def test_cells_are_seen_at_every_step() -> None:
    model = network(part="projected")
    op = lstm_of(model)
    names = inner_tensors(op)
    assert list(names) == ["cell_state", "hidden"]
    found = seen_inside(model, [op], data(model), 8)
    cells = found[names["cell_state"].name]
    peaks = []
    for length in range(1, 7):  # the state after each step, by a network that ends there
        (x,) = data(model).values()
        shorter = network(part="projected")
        shorter.graph.inputs[0].shape = (1, length, 5)
        plan = luciole.Interpreter(shorter)
        plan.allocate_tensors()
        for one in x:
            plan.reset_all_variables()
            plan.run({"input": one[None, :length]})
            number = shorter.graph.values.index(lstm_of(shorter).cell_state)
            peaks.append(np.abs(plan.get_tensor(number)).max())
    assert max(-cells.low, cells.high) == pytest.approx(max(peaks), rel=1e-5)
    assert cells.records == RECORDS


def test_the_scale_of_cells_is_the_least_power_of_two_that_holds_them() -> None:
    result = made(network())
    assert result.ranges is not None
    reach = result.ranges.tensors["cell_state"]
    (scale,) = Affine.of(lstm_of(result.model).cell_state, "cells").scale
    most = max(-reach.low, reach.high)
    assert np.log2(scale) == np.rint(np.log2(scale))
    assert scale * 2**14 < most <= scale * 2**15


def test_saved_ranges_hold_the_cells(tmp_path: Path) -> None:
    model, path = network(part="projected"), tmp_path / "ranges.json"
    first = made(model, rounding="nearest")
    assert first.ranges is not None
    assert {"cell_state", "y0/hidden"} <= first.ranges.tensors.keys()
    first.ranges.save(path)
    again = luciole.quantize(model, scheme="int8", rounding="nearest", ranges_from=path)
    assert to_bytes(again.model) == to_bytes(first.model)
    content = first.ranges.to_json()
    del content["tensors"]["cell_state"]
    with pytest.raises(QuantizeError, match="no range is given for 'cell_state'"):
        luciole.quantize(model, scheme="int8", rounding="nearest", ranges_from=content)


@pytest.mark.parametrize(
    ("part", "given", "reason"),
    [
        ("plain", {"activation": Act.RELU}, "its activation is RELU, and integers know TANH alone"),
        ("everything", {}, "TFLite's kernel on integers mistakes outputs for cells"),
    ],
)
def test_what_integers_do_not_know_keeps_floats_and_says_why(
    part: str, given: dict[str, Any], reason: str
) -> None:
    model = network(part=part, **given)
    x = model.graph.inputs[0]
    turned = model.graph.add_constant("order", np.array([0, 2, 1], np.int32))
    op = lstm_of(model)
    last = model.graph.append(Transpose(op.output, turned), "z").output
    model.graph.outputs = [last]
    result = luciole.quantize(model, {x.name: data(model)[x.name]}, scheme="int8", proof=False)
    (text,) = result.report.floats
    assert reason in text
    assert text.endswith("its weights are integers")
    kept = lstm_of(result.model)
    assert kept.intermediates == ()
    assert kept.cell_state.quantization is None
    assert kept.input_to_cell_weights.dtype == TensorType.INT8


def test_digits_keep_their_answers() -> None:
    model = luciole.load(data_path("models/mnist_lstm_fp32.tflite"))
    with np.load(data_path("mnist.npz")) as arrays:
        train, test = (np.asarray(arrays[k][:300] / 255, np.float32) for k in ("x_train", "x_test"))
    result = luciole.quantize(model, train[:80], scheme="int8", proof=False)
    assert result.report.floats == []
    before, after = (answers(m, test) for m in (model, result.model))
    assert (before.argmax(1) == after.argmax(1)).mean() >= 0.99


def answers(model: Model, x: Array) -> Array:
    interpreter = luciole.Interpreter(model)
    interpreter.allocate_tensors()
    found: list[Array] = []
    for one in x:
        interpreter.reset_all_variables()
        given = one.reshape(model.graph.inputs[0].dims)
        found += interpreter.run({model.graph.inputs[0].name: given}).values()
    return np.concatenate(found)


@pytest.mark.parametrize("scheme", ["w4a8", "mixed", "from_fake_quant"])
def test_other_schemes_of_bytes_take_them_too(scheme: str) -> None:
    model = network()
    x = data(model)
    if scheme == "from_fake_quant":
        with pytest.raises(QuantizeError, match="no FAKE_QUANT"):
            luciole.quantize(model, x, scheme=scheme)
        return
    found = lstm_of(luciole.quantize(model, x, scheme=scheme, proof=False).model)
    assert found.input.dtype == TensorType.INT8
    assert found.input_to_cell_weights.dtype == TensorType.INT8


def test_a_simulation_has_the_integers_of_layers_that_round_what_they_read() -> None:
    """With 16 bits an LSTM reads floats beside weights of 8 bits, and rounds them itself."""
    model, records = network(), data(network())
    graph = model.graph
    graph.outputs = [graph.append(Tanh(graph.outputs[0]), "t").output]
    result = luciole.quantize(model, records, scheme="int16x8", judges=records)
    assert result.proof is not None
    (output,) = result.proof.outputs
    assert output.simulation is not None
    assert output.file.snr_db == pytest.approx(output.simulation.snr_db, abs=1.0)
    assert result.rounded is not None
    assert all(v.dtype != TensorType.INT8 for v in result.rounded.model.graph.values)
    with pytest.raises(QuantizeError, match=r"ONE's numbers are not of what it reads: .*weights"):
        luciole.quantize(model, records, compatible="one")
