"""Channels of a layer's input made alike: where that is possible, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.interpreter.compare import compare
from luciole.ir import Array, Model, Op, learned_levels
from luciole.ir.equalization import equalized
from luciole.ir.ops.activations import Relu, Relu6, Tanh
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.lquantizer import Choice, Config, OutputAware, Result, quantize_records
from luciole.lquantizer.network import even_inputs, preparation
from luciole.lquantizer.network.rescale import Pair, pairs_of
from luciole.schema.enums import ActivationFunctionType
from tests.lquantizer.networks import X, uneven
from tests.networks import random


def layers(model: Model) -> list[FullyConnected]:
    return [op for op in model.graph.ops if isinstance(op, FullyConnected)]


def run(model: Model, x: Array = X) -> Array:
    return next(iter(Interpreter(model).run({"x": x}).values()))


def error(model: Model, other: Model) -> float:
    wanted, found = (run(m, random(60, 300, 20)).astype(np.float64) for m in (model, other))
    return float(np.mean((wanted - found) ** 2) / np.mean(wanted**2))


# ----------------------------------------------------------------------------------- where
@pytest.mark.parametrize("between", [None, Relu, Relu6])
def test_a_layer_right_behind_or_behind_an_activation(between: type[Op] | None) -> None:
    model = uneven(between)
    first, last = layers(model)
    act = None if between is None else model.graph.ops[1]
    assert list(pairs_of(model.graph)) == [Pair(first, last, act)]


def fused_tanh(model: Model) -> None:
    layers(model)[0].activation = ActivationFunctionType.TANH


def also_an_output(model: Model) -> None:
    model.graph.outputs.append(layers(model)[1].input)


def also_read_elsewhere(model: Model) -> None:
    graph = model.graph
    graph.outputs.append(graph.append(Tanh(layers(model)[0].output), "reader").output)


def also_the_weights_of_another(model: Model) -> None:
    graph, first = model.graph, layers(model)[0]
    twin = FullyConnected(graph.inputs[0], first.weights, first.bias)
    graph.outputs.append(graph.append(twin, "twin").output)


@pytest.mark.parametrize(
    "change", [fused_tanh, also_an_output, also_read_elsewhere, also_the_weights_of_another]
)
def test_what_somebody_else_needs_or_a_curve_bends_is_not_scaled(
    change: Callable[[Model], None],
) -> None:
    model = uneven()
    change(model)
    assert list(pairs_of(model.graph)) == []


def test_a_tanh_is_in_the_way() -> None:
    assert list(pairs_of(uneven(Tanh).graph)) == []


# ---------------------------------------------------------------------------------- the whole fit
def without_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "even_inputs", lambda *given: {})


@pytest.mark.parametrize("between", [Relu, Relu6])
def test_uneven_channels_cost_the_fit_nothing(
    monkeypatch: pytest.MonkeyPatch, between: type[Op]
) -> None:
    model, config = uneven(between), Config(Choice(2, 2))
    with_it = quantize_records(model, {"x": X}, OutputAware(), config)
    without_scales(monkeypatch)
    without = quantize_records(model, {"x": X}, OutputAware(), config)
    assert error(model, with_it.model) < 0.5 * error(model, without.model)


@cache
def evened() -> Result:
    """The network with uneven channels, made once for all tests."""
    return quantize_records(uneven(), {"x": X}, OutputAware(), Config(Choice(8, 4)))


def test_the_scaled_tensor_has_another_name_and_is_the_float_one_but_for_the_scales() -> None:
    model, result = uneven(), evened()
    first, last = result.model.graph.ops
    assert (first.name, last.name) == ("act1/equalized", "fc2")
    trace = result.traces["fc1"]
    assert list(trace.learned) == ["act1/equalized"]
    assert trace.scales is not None
    interpreters = [Interpreter(m) for m in (model, result.model)]
    wanted, found = (
        i.get_tensor(next(d["index"] for d in i.get_tensor_details() if d["name"] == name))
        for i, name in zip(interpreters, ("act1", "act1/equalized"), strict=True)
        if i.run({"x": X})
    )
    assert np.mean((found * trace.scales - wanted) ** 2) < 0.02 * np.mean(wanted**2)


def test_every_layer_is_compared_with_its_original_times_the_factors() -> None:
    model, result = uneven(), evened()
    ((divided_, note),) = equalized(result.model.graph).items()
    assert (divided_.name, note.original) == ("act1/equalized", "act1")
    assert note.factors.max() / note.factors.min() > 10
    found = compare(model, result.model, {"x": X})
    assert [e.name for e in found.layers] == ["act1", "fc2"]
    assert found.unmatched == (["fc1"], [])
    assert all(e.measures.snr_db is not None and e.measures.snr_db > 15 for e in found.layers)
    back = compare(result.model, model, {"x": X})
    assert [e.name for e in back.layers] == ["act1/equalized", "fc2"]
    assert back.layers[0].measures.mse == pytest.approx(found.layers[0].measures.mse, rel=1e-5)


def test_channels_that_are_even_keep_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(even_inputs, "rescale", lambda *given: {})
    result = quantize_records(uneven(), {"x": X}, OutputAware(), Config(Choice(4, 4)))
    assert [op.name for op in result.model.graph.ops] == ["act1", "fc2"]
    assert result.model.metadata == []


def test_latents_are_scaled_with_their_layer() -> None:
    """What fine-tuning starts from: near the levels of the codes in the file."""
    result = luciole.quantize(uneven(), X, encode_bits=4, proof=False)
    op = result.model.graph.ops[0]
    assert isinstance(op, LQFullyConnected)
    levels = decoded(op)
    away = np.linalg.norm(result.latents[op.name] - levels, axis=1)
    assert (away < 0.2 * np.linalg.norm(levels, axis=1)).all()


def decoded(op: LQFullyConnected) -> Array:
    """The weights that a layer's codes stand for, one row for each output."""
    planes, basis, offsets = op.weights_binary, op.weights_scales, op.weights_offsets
    assert planes.data is not None
    assert basis.data is not None
    shift = None if offsets is None else offsets.data
    return learned_levels.decode(
        planes.data, basis.data, op.hidden_size, 0 if shift is None else shift
    )


def test_weights_only_scales_nothing() -> None:
    result = luciole.quantize(uneven(), X, encode_bits=2, weights_only=True, proof=False)
    assert not any("equalized" in value.name for value in result.model.graph.values)
