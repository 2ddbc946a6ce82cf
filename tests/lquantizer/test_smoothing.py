"""Channels of normalizations that are far larger than others, in front of dense layers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import first_output
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.elementwise_binary import Add, Mul, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Rsqrt
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.lquantizer.assignment.schemes import Rescale
from luciole.lquantizer.network.smoothing import norms_of
from tests.networks import dense, random

CHANNELS = 48
OUTLIERS = np.ones(CHANNELS, np.float32)
OUTLIERS[[5, 20, 33]] = 40


def layer_norm(graph: Graph, x: Value, name: str) -> Value:
    """A normalization as Keras writes it, some channels of which are large."""
    axis = graph.add_constant(f"{name}/axis", np.array([2], np.int32))
    mean = graph.append(Mean(x, axis, keep_dims=True), f"{name}/mean").output
    square = graph.append(SquaredDifference(x, mean), f"{name}/square").output
    moment = graph.append(Mean(square, axis, keep_dims=True), f"{name}/moment").output
    little = graph.add_constant(f"{name}/epsilon", np.array(1e-3, np.float32))
    root = graph.append(Rsqrt(graph.append(Add(moment, little), f"{name}/v").output), f"{name}/r")
    gamma = graph.add_constant(f"{name}/gamma", (1 + random(3, CHANNELS) / 10) * OUTLIERS)
    beta = graph.add_constant(f"{name}/beta", random(4, CHANNELS) * OUTLIERS)
    inverse = graph.append(Mul(root.output, gamma), f"{name}/inverse").output
    product = graph.append(Mul(mean, inverse), f"{name}/m").output
    shift = graph.append(Sub(beta, product), f"{name}/s")
    scaled = graph.append(Mul(x, inverse), f"{name}/scaled").output
    return graph.append(Add(scaled, shift.output), f"{name}/y").output


def rms_norm(graph: Graph, x: Value, name: str) -> Value:
    """A normalization without a mean."""
    gamma = graph.add_constant(f"{name}/gamma", (1 + random(3, CHANNELS) / 10) * OUTLIERS)
    return graph.append(RmsNorm(x, gamma, epsilon=1e-3), f"{name}/y").output


def block(norm: object = layer_norm, residual: bool = False) -> Model:
    """A normalization, and two layers on it, whose weights are small for the large channels."""
    assert callable(norm)
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8, CHANNELS))
    y = norm(graph, x, "norm")
    layers = [dense(graph, y, (32, CHANNELS), n, keep_num_dims=True) for n in ("q", "k")]
    for op in layers:
        small = op.weights.contents / OUTLIERS
        op.set_operand(1, graph.add_constant(f"{op.name}/w", small.astype(np.float32)))
    total = graph.append(Add(layers[0].output, layers[1].output), "total").output
    tail = dense(graph, total, (CHANNELS, 32), "tail", keep_num_dims=True, seed=9).output
    graph.outputs = [graph.append(Add(tail, y), "sum").output if residual else tail]
    return model


DATA, UNSEEN = random(5, 40, 8, CHANNELS), random(6, 30, 8, CHANNELS)


def kept(model: Model, whole: Model) -> float:
    """Decibels of the float network's answers over what is lost of them."""
    wanted, found = (first_output(m, {"x": UNSEEN}) for m in (whole, model))
    return float(10 * np.log10(np.square(wanted).sum() / np.square(found - wanted).sum()))


def quantized(model: Model, scheme: str, rescale: Rescale) -> Model:
    """A network of integers."""
    return luciole.quantize(model, DATA, scheme=scheme, rescale=rescale, proof=False).model


@cache
def as_it_is(scheme: str) -> float:
    """What is kept of a block whose channels are not rescaled."""
    return kept(quantized(block(), scheme, "none"), block())


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_rescaled_networks_compute_the_same(norm: object) -> None:
    model = block(norm)
    wanted = first_output(model, {"x": UNSEEN})
    (found,) = norms_of(model.graph)
    assert (found.channels, len(found.readers)) == (CHANNELS, 2)
    scales = np.exp(random(8, CHANNELS)).astype(np.float64)
    value = found.value.name
    before = tensor(model, value)
    found.apply(model.graph, scales)
    np.testing.assert_allclose(first_output(model, {"x": UNSEEN}), wanted, rtol=0, atol=1e-4)
    np.testing.assert_allclose(tensor(model, value), before * scales, rtol=1e-3, atol=1e-3)


def tensor(model: Model, name: str) -> Array:
    """What a tensor holds for a record."""
    interpreter = luciole.Interpreter(model, keep_tensors=True)
    interpreter.run({"x": UNSEEN[:1]})
    index = next(i for i, v in enumerate(interpreter.graph.values) if v.name == name)
    return interpreter.get_tensor(index)


@pytest.mark.parametrize("scheme", ["int8", "w4a8", "dynamic"])
def test_large_channels_cost_the_others_nothing(scheme: str) -> None:
    whole = block()
    assert kept(quantized(whole, scheme, "auto"), whole) > as_it_is(scheme) + 6


@pytest.mark.parametrize("rule", ["peaks", "equal"])
def test_rules_are_obeyed(rule: Rescale) -> None:
    whole = block()
    assert kept(quantized(whole, "int8", rule), whole) > as_it_is("int8") + 6


def test_a_tensor_that_others_read_stays_as_it_is() -> None:
    assert not list(norms_of(block(residual=True).graph))
    ended = block()
    ended.graph.outputs.append(next(v for v in ended.graph.values if v.name == "norm/y"))
    assert not list(norms_of(ended.graph))
    shared = block()
    first, second = (use.op for use in next(norms_of(shared.graph)).value.users)
    second.set_operand(1, first.operands[1])
    assert not list(norms_of(shared.graph))


def stretched(graph: Graph, x: Value, name: str) -> Value:
    """Channels of which one number is added to all: its constant is of all of them."""
    axis = graph.add_constant(f"{name}/axis", np.array([2], np.int32))
    third = graph.add_constant(f"{name}/third", np.array(1 / 3, np.float32))
    gamma = graph.add_constant(f"{name}/gamma", OUTLIERS)
    mean = graph.append(Mean(x, axis, keep_dims=True), f"{name}/mean").output
    share = graph.append(Mul(mean, third), f"{name}/share").output
    scaled = graph.append(Mul(x, gamma), f"{name}/scaled").output
    return graph.append(Add(scaled, share), f"{name}/y").output


def test_what_is_stretched_along_the_channels_stays_as_it_is() -> None:
    assert not list(norms_of(block(stretched).graph))


def test_an_even_network_is_left_alone() -> None:
    model = block()
    (found,) = norms_of(model.graph)
    found.apply(model.graph, 1 / OUTLIERS.astype(np.float64))
    plain, smooth = quantized(model, "int8", "none"), quantized(model, "int8", "auto")
    assert abs(kept(smooth, model) - kept(plain, model)) < 1.5


def test_saved_ranges_say_how_channels_were_rescaled() -> None:
    whole = block()
    first = luciole.quantize(whole, DATA, scheme="int8", rounding="nearest", proof=False)
    assert first.ranges is not None
    assert any(one.front == "norm/y" for one in first.ranges.rescaled)
    again = luciole.quantize(
        whole, None, scheme="int8", rounding="nearest", ranges_from=first.ranges, proof=False
    )
    np.testing.assert_array_equal(
        first_output(again.model, {"x": UNSEEN}), first_output(first.model, {"x": UNSEEN})
    )
