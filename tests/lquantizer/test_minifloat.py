"""Networks of minifloats: every tensor is one, sums are float32, files hold codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, Model
from luciole.ir.analysis.weights import weights_of
from luciole.ir.analysis.widths import bits_of
from luciole.ir.equalization import equalized
from luciole.ir.minifloat import Minifloat
from luciole.ir.ops.elementwise_binary import Add, Minimum, Mul
from luciole.ir.ops.elementwise_unary import Rsqrt, Square
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.minifloat import MinifloatDecode, MinifloatRound, number_format
from luciole.ir.ops.reduce import Mean
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.judging.judge import VARIANCE
from luciole.lquantizer.judging.records import HELD_BACK, NOT_TAUGHT
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lquantizer import rescale_support
from tests.networks import network, random, steps

SIZES = (20, 48, 4)
DATA = random(3, 40, SIZES[0])


def answers(model: Model, data: Array = DATA) -> Array:
    (found,) = outputs_of(luciole.Interpreter(model), {model.graph.inputs[0].name: data}).values()
    return found


def quantized(model: Model, data: Array | None = None, **choices: Any) -> Model:
    return luciole.quantize(model, data, scheme="minifloat", proof=False, **choices).model


def test_numbers_are_those_of_the_formula() -> None:
    model, numbers = network(SIZES), Minifloat(4, 3)
    first, second = (op for op in model.graph.ops if isinstance(op, FullyConnected))
    r = numbers.round

    def dense(op: FullyConnected, x: Array) -> Array:
        assert op.weights.data is not None
        assert op.bias is not None
        assert op.bias.data is not None
        return r(x @ r(op.weights.data).T + op.bias.data)

    wanted = dense(second, r(np.tanh(dense(first, r(DATA)))))
    found = answers(quantized(model, exponent=4, mantissa=3))
    off = np.abs(found - wanted) > 2.0 ** (numbers.shift - 3) * np.maximum(np.abs(wanted), 1)
    assert not off.any(), "a sum whose order differs may round to the neighbour, no further"
    assert (found != wanted).mean() < 0.05
    np.testing.assert_array_equal(found, r(found))


def test_files_hold_codes_and_come_back(tmp_path: Path) -> None:
    model = quantized(network(SIZES), exponent=3, mantissa=4)
    luciole.save(model, tmp_path / "q.circle")
    again = luciole.load(tmp_path / "q.circle")
    np.testing.assert_array_equal(answers(again), answers(model))
    assert to_bytes(from_bytes(to_bytes(model))) == to_bytes(model)
    decoded = [op for op in again.graph.ops if isinstance(op, MinifloatDecode)]
    assert {op.codes.dims for op in decoded} == {(20 * 48,), (48 * 4,)}, "8 bits each"
    layer = next(op for op in again.graph.ops if isinstance(op, FullyConnected))
    assert bits_of(layer) == (8, 8)
    weights = weights_of(layer)
    original = network(SIZES).graph.ops[0].operands[1]
    assert weights is not None
    assert original is not None
    assert original.data is not None
    np.testing.assert_array_equal(weights.values(), Minifloat(3, 4).round(original.data))


def test_names_of_the_ends_stay() -> None:
    before, after = network(), quantized(network(), exponent=5, mantissa=5)
    for ends in ("inputs", "outputs"):
        names = [[v.name for v in getattr(m.graph, ends)] for m in (before, after)]
        assert names[0] == names[1]
    assert after.signatures[0].outputs[0][1] is after.graph.outputs[0]


def test_a_power_of_two_saves_what_is_too_large_or_too_small() -> None:
    model = network(SIZES)
    first = model.graph.ops[0]
    assert isinstance(first, FullyConnected)
    assert first.weights.data is not None
    for factor in (2.0**-12, 2.0**9):
        wide = model.clone()
        op = wide.graph.ops[0]
        assert isinstance(op, FullyConnected)
        op.weights.set_data(first.weights.data * np.float32(factor))
        data = DATA / np.float32(factor)
        plain, scaled = (
            quantized(wide, data if s else None, exponent=3, mantissa=5, scaled=s)
            for s in (False, True)
        )
        errors = [np.abs(answers(m, data) - answers(wide, data)).max() for m in (plain, scaled)]
        assert errors[1] < errors[0] / 5


def test_scaled_numbers_keep_uneven_channels() -> None:
    data = random(9, 40, 6, 6, 3)
    even, uneven = (rescale_support.network(Act.RELU, kind) for kind in (False, True))
    floats = answers(even, data)
    np.testing.assert_allclose(answers(uneven, data), floats, atol=1e-5)
    choices: dict[str, Any] = {"exponent": 3, "mantissa": 5, "scaled": True}
    made = [quantized(model, data, **choices) for model in (even, uneven)]
    errors = [np.square(answers(model, data) - floats).mean() for model in made]
    assert errors[1] < 2 * errors[0]
    names = {value.name for value in equalized(made[1].graph)}
    assert names == {"y1/equalized", "y2/equalized"}, "the file says which channels are divided"


def test_a_search_takes_the_fewest_bits() -> None:
    result = luciole.quantize(
        network(SIZES), DATA, scheme="minifloat", target_drop=5.0, proof=False
    )
    tried = {(int(o["exponent"]), int(o["mantissa"])): o["drop"] for o in result.report.options}
    good = [1 + e + m for (e, m), drop in tried.items() if float(drop) <= 5.0]
    found = {number_format(op).bits for op in _rounded(result.model)}
    assert found == {min(good)}
    plain = answers(network(SIZES)).argmax(1)
    assert np.mean(answers(result.model).argmax(1) != plain) <= 0.05


def test_layers_may_have_fewer_bits() -> None:
    model, data = network((20, 48, 32, 4)), random(5, 200, 20)
    given: dict[str, Any] = {"scheme": "minifloat", "target_drop": 6.0, "proof": False}
    whole, narrowed = (luciole.quantize(model, data, per_layer=p, **given) for p in (False, True))
    before, after = (sum(layer.bytes_after for layer in r.report.layers) for r in (whole, narrowed))
    assert after < before
    plain = answers(model, data).argmax(1)
    assert np.mean(answers(narrowed.model, data).argmax(1) != plain) <= 0.06


def test_labels_are_minded() -> None:
    wrong = (answers(network(SIZES)).argmax(1) + 1) % 4
    result = luciole.quantize(
        network(SIZES), DATA, scheme="minifloat", target_drop=0.0, labels=wrong
    )
    drops = [float(o["drop"]) for o in result.report.options]
    assert min(drops) < 0, "some roundings give an answer that the labels want"


def test_only_layers_need_be_rounded() -> None:
    everything, some = (
        quantized(network(SIZES), exponent=4, mantissa=3, layers_only=only)
        for only in (False, True)
    )
    assert len(_rounded(everything)) == 4
    assert [op.input.name for op in _rounded(some)] == ["x", "act1"]
    error = [np.abs(answers(m) - answers(network(SIZES))).mean() for m in (everything, some)]
    assert error[1] <= error[0]


def _rounded(model: Model) -> list[MinifloatRound]:
    return [op for op in model.graph.ops if isinstance(op, MinifloatRound)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({}, "takes exponent and mantissa, or target_drop"),
        ({"exponent": 5}, "takes exponent and mantissa, or target_drop"),
        ({"exponent": 5, "mantissa": 5, "target_drop": 1.0}, "takes exponent and mantissa, or"),
        ({"exponent": 9, "mantissa": 5}, "the exponent has 9 bits, 2 to 7 are possible"),
        ({"target_drop": 101.0}, "target_drop is 101.0: 0 to 100 points"),
        ({"exponent": 5, "mantissa": 5, "per_layer": True}, "per_layer goes with target_drop"),
        (
            {"exponent": 5, "mantissa": 5, "scaled": True},
            "scaled, and their bits searched, on data",
        ),
        ({"exponent": 5, "mantissa": 5, "granularity": "tensor"}, "granularity does not go with"),
    ],
)
def test_what_does_not_go_together_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(QuantizeError, match=message):
        quantized(network(), **choices)


def test_data_that_cannot_be_used_are_refused() -> None:
    bad = DATA.copy()
    bad[3, 4] = np.nan
    with pytest.raises(QuantizeError, match=r"element .4. of record 3 is nan"):
        quantized(network(SIZES), bad, exponent=5, mantissa=5, scaled=True)
    with pytest.raises(QuantizeError, match="40 records have 3 labels"):
        luciole.quantize(
            network(SIZES), DATA, scheme="minifloat", target_drop=1.0, labels=np.zeros(3)
        )
    with pytest.raises(QuantizeError, match="labels judge what is chosen for a target_drop"):
        luciole.quantize(network(), DATA, scheme="int8", labels=np.zeros(40))


@pytest.mark.parametrize("softmax", [True, False])
def test_a_search_counts_the_answers_of_steps(softmax: bool) -> None:
    model, data = steps(softmax=softmax), random(5, 60, 6, 20)
    plain = answers(model, data).argmax(-1)
    choices: dict[str, Any] = {"scheme": "minifloat", "target_drop": 1.0, "proof": False}
    result = luciole.quantize(model, data, labels=plain, **choices)
    changed = answers(result.model, data).argmax(-1) != plain
    assert 0 < 100 * np.mean(changed) <= 1
    drops = [tried["drop"] for tried in result.report.options]
    assert any(drop == pytest.approx(100 * np.mean(changed)) for drop in drops)


def test_a_search_bounds_the_error_of_numbers_that_score_no_classes() -> None:
    model, data = steps(softmax=False), random(5, 9, 6, 20)
    result = luciole.quantize(model, data, scheme="minifloat", target_drop=0.5, proof=False)
    wanted, found = answers(model, data), answers(result.model, data)
    lost = 100 * np.square(found - wanted).mean() / wanted.var()
    judged = result.report.judged
    assert judged is not None
    assert judged.unit == VARIANCE
    assert judged.drop == pytest.approx(lost, rel=1e-4)
    assert 0 < lost <= 0.5


def test_scales_and_bits_are_learned_and_judged_by_others() -> None:
    choices: dict[str, Any] = {"scheme": "minifloat", "target_drop": 10.0, "proof": False}
    plain, scaled = (
        luciole.quantize(network(SIZES), DATA, scaled=s, **choices).report.judged
        for s in (False, True)
    )
    assert plain is not None
    assert scaled is not None
    assert (plain.records, plain.origin) == (40, NOT_TAUGHT)
    assert (scaled.records, scaled.origin) == (8, HELD_BACK)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_minifloat_refuses_weights_that_are_no_numbers(number: float) -> None:
    model = network(SIZES)
    op = model.graph.ops[0]
    assert isinstance(op, FullyConnected)
    assert op.weights.data is not None
    weights = op.weights.data.copy()
    weights[3, 5] = number
    op.weights.set_data(weights)
    with pytest.raises(QuantizeError, match="weights of FULLY_CONNECTED 'fc1' are not all finite"):
        quantized(model, exponent=4, mantissa=3)


@pytest.mark.parametrize("number", [np.nan, -np.inf])
def test_minifloat_refuses_constants_that_are_no_numbers_but_takes_masks(number: float) -> None:
    model = network(SIZES)
    graph, answer = model.graph, model.graph.outputs[0]
    mask = graph.add_constant("mask", np.array([9, number, 9, 9], np.float32))
    graph.outputs = [graph.append(Minimum(answer, mask), "masked").output]
    if np.isnan(number):
        with pytest.raises(QuantizeError, match="Minimum 'masked': 'mask' is not all numbers"):
            quantized(model, exponent=4, mantissa=3)
    else:
        assert (answers(quantized(model, exponent=4, mantissa=3))[:, 1] < -100).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_what_has_a_pole_is_not_rounded(scaled: bool) -> None:
    """A variance that is rounded to 0 makes every number infinite, and so does its small addend."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    axes = graph.add_constant("axes", np.array([1], np.int32))
    small = graph.add_constant("small", np.array([1e-6], np.float32))
    squares = graph.append(Square(x), "squares").output
    variance = graph.append(Mean(squares, axes, keep_dims=True), "variance").output
    root = graph.append(Rsqrt(graph.append(Add(variance, small), "apart").output), "root").output
    graph.outputs = [graph.append(Mul(x, root), "y").output]
    data = random(5, 40, 8) * np.float32(1e-2)
    found = answers(
        quantized(model, data if scaled else None, exponent=3, mantissa=4, scaled=scaled), data
    )
    assert np.isfinite(found).all()
    if scaled:
        assert np.square(found - answers(model, data)).mean() < 0.01 * np.square(found).mean()
