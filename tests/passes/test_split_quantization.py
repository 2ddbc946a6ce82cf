"""Networks of integers become the floats between QUANTIZE and DEQUANTIZE that they were made of,
and come back as they were.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.findings import Severity
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.fuse_quantization import fuse_quantization, fuse_weights
from luciole.ir.passes.split_quantization import computes_with_integers, split_quantization
from luciole.ir.quantization import Affine, stored_parameters
from luciole.ir.verify import verify
from luciole.lquantizer import QuantizeError, simulate
from luciole.lquantizer.rewrite.integers import runs
from tests.lquantizer.networks import images
from tests.lquantizer.runs import quantized
from tests.networks import network
from tests.support import data_path

FILES = ["resnet8_int8", "kws_int8", "ad01_int8", "vww_96_int8"]
"""Made by TFLite's converter."""
SCHEMES = ["int8", "uint8", "w4a8", "int16x8", "dynamic"]


@cache
def of_scheme(scheme: str) -> Model:
    """A network of a scheme, which nobody changes."""
    return quantized(images(), scheme=scheme, rescale="none")


def table(graph: Graph) -> list[tuple[Any, ...]]:
    """Everything that a graph's operators are: kinds, versions, attributes and tensors."""
    return [
        (op.kind, op.version, op.attributes(), [facts(v) for v in (*op.operands, *op.results)])
        for op in graph.ops
    ]


def facts(value: Value | None) -> tuple[Any, ...] | None:
    if value is None:
        return None
    scales, points = stored_parameters(value)
    wide = value.dtype in (TensorType.INT32, TensorType.INT64)  # a bias, compared by itself
    numbers = () if wide else (scales.tolist(), points.tolist(), as_bytes(value))
    return (value.name, value.dtype, value.shape, *numbers)


def as_bytes(value: Value) -> bytes | None:
    return None if value.data is None else value.data.tobytes()


def biases(graph: Graph) -> dict[str, Array]:
    wide = (TensorType.INT32, TensorType.INT64)
    named = {v.name: v.data for v in graph.values if v.dtype in wide}
    return {name: data for name, data in named.items() if data is not None}


def back(model: Model) -> Graph:
    work = model.clone()
    assert split_quantization(work.graph, runs)
    assert not any(computes_with_integers(op) for op in work.graph.ops)
    fuse_quantization(work.graph, runs)
    fuse_weights(work.graph, runs)
    remove_dead(work.graph)
    return work.graph


def check_back(model: Model) -> None:
    graph = back(model)
    assert table(graph) == table(model.graph)
    before, after = biases(model.graph), biases(graph)
    assert before.keys() == after.keys()
    for name, codes in before.items():  # real biases are float32: 24 bits
        off = np.abs(after[name].astype(np.float64) - codes)
        assert (off <= np.abs(codes.astype(np.float64)) * 2.0**-23).all(), name
        assert (off[np.abs(codes.astype(np.int64)) < 2**22] == 0).all(), name


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_converter_come_back(name: str) -> None:
    check_back(luciole.load(data_path(f"models/{name}.tflite")))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_networks_of_every_scheme_come_back(scheme: str) -> None:
    check_back(of_scheme(scheme))


@pytest.mark.parametrize("end", ["int8", "uint8"])
def test_integer_ends_come_back(end: str) -> None:
    check_back(quantized(network(), scheme="int8", rescale="none", input_type=end, output_type=end))


def test_explicit_weights_are_that_form_already() -> None:
    model = quantized(images(), scheme="weights")
    assert not split_quantization(model.graph, runs)
    with pytest.raises(QuantizeError, match="nothing to simulate"):
        simulate(model)


@pytest.mark.parametrize("scheme", ["int8", "uint8", "w4a8", "int16x8"])
def test_every_operator_is_within_a_step_of_its_integers(scheme: str) -> None:
    """Given the same integers: one after the other, differences add up."""
    model = of_scheme(scheme)
    whole = Interpreter(model, keep_tensors=True)
    whole.run({"x": np.random.default_rng(7).normal(size=(1, 8, 8, 3)).astype(np.float32)})
    arrays = {v.name: whole.get_tensor(k) for k, v in enumerate(model.graph.values)}
    most = 2 if scheme == "int16x8" else 1  # TFLite's TANH of 16 bits interpolates in a table
    looked_at = [op for op in model.graph.ops if computes_with_integers(op)]
    for op in looked_at:
        alone, given = only(op), {}
        for value in alone.graph.inputs:
            given[value.name] = arrays[value.name]
        (found,) = Interpreter(simulate(alone).model).run(given).values()
        off = found.astype(np.int64) - arrays[op.output.name]
        assert np.abs(off).max() <= most, op.kind
    assert len(looked_at) > 12


def only(twin: Op) -> Model:
    """Copy an operator with its constants into a model of its own."""
    model = Model()
    alone = model.add_graph(Graph("alone"))
    operands = [None if v is None else moved(alone, v) for v in twin.operands]
    inputs = [v for v in operands if v is not None and not v.is_constant]
    alone.inputs = list(dict.fromkeys(inputs))
    op = alone.append(twin.clone(operands), twin.output.name)
    op.output.dtype, op.output.quantization = twin.output.dtype, twin.output.quantization
    alone.outputs = [op.output]
    return model


def moved(graph: Graph, value: Value) -> Value:
    same = next((v for v in graph.values if v.name == value.name), None)
    if same is not None:
        return same
    if value.data is not None:
        copy = graph.add_constant(value.name, value.data, value.dtype)
    else:
        copy = graph.add_value(Value(value.name, value.dtype, value.shape))
    copy.quantization = value.quantization
    return copy


def test_float_ends_and_names_stay() -> None:
    model = quantized(network(), scheme="int8")
    made = simulate(model).model
    (signature,) = made.signatures
    assert [name for name, _ in (*signature.inputs, *signature.outputs)] == ["a", "b"]
    assert [v.name for v in made.graph.outputs] == [v.name for v in model.graph.outputs]
    kinds = {type(op) for op in made.graph.ops if any(holds_codes(v) for v in op.operands)}
    assert kinds == {Dequantize}
    assert sum(isinstance(op, Quantize) for op in made.graph.ops) == 4


def holds_codes(value: Value | None) -> bool:
    return value is not None and value.dtype == TensorType.INT8


def test_a_float_network_is_refused() -> None:
    with pytest.raises(QuantizeError, match="nothing to simulate: no operator computes"):
        luciole.simulate(network())


def test_a_simulated_network_is_quantized_again() -> None:
    """Its weights are those of the integers; what stood between operators is taken out."""
    model, x = images(), np.random.default_rng(3).normal(size=(24, 8, 8, 3)).astype(np.float32)
    choices: dict[str, Any] = {"scheme": "int8", "rescale": "none", "proof": False}
    first = luciole.quantize(model, x, **choices)
    again = luciole.quantize(simulate(first.model).model, x, **choices)
    assert any("were taken out" in warning for warning in again.report.warnings)
    assert not any(isinstance(op, Dequantize) for op in again.model.graph.ops[:-1])
    kinds, others = ([op.kind for op in r.model.graph.ops] for r in (first, again))
    assert kinds == others
    found, wanted = (Interpreter(r).run({"x": x[:1]}) for r in (again.model, first.model))
    for a, b in zip(found.values(), wanted.values(), strict=True):
        np.testing.assert_allclose(a, b, atol=8 / 256)


def test_litert_runs_a_simulated_network() -> None:
    from ai_edge_litert.interpreter import Interpreter as Peer

    from luciole.exporters import to_bytes

    made = simulate(of_scheme("int8")).model
    peer = Peer(model_content=to_bytes(made, "tflite"))
    peer.allocate_tensors()
    x = np.random.default_rng(3).normal(size=(1, 8, 8, 3)).astype(np.float32)
    peer.set_tensor(peer.get_input_details()[0]["index"], x)
    peer.invoke()
    (found,) = Interpreter(made).run({"x": x}).values()
    theirs = peer.get_tensor(peer.get_output_details()[0]["index"])
    assert np.abs(found - theirs).max() <= 4 / 256  # some rounding may fall to the other side


@pytest.mark.parametrize("axis", [0, 1])
def test_steps_of_a_bias_are_those_of_the_outputs(axis: int) -> None:
    """Scales of a square matrix's other axis are as many, but no steps of the bias: no kernel runs
    on them, and a layer that has them stays as it is.
    """
    model, scales = Model(), np.array([0.5, 0.25, 2.0, 1.0], np.float32)
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4), TensorType.INT8)
    x.quantization = Affine.single(0.5, 0, TensorType.INT8).table()
    weights = graph.add_constant("weights", np.arange(-8, 8, dtype=np.int8).reshape(4, 4))
    weights.quantization = Affine.channels(scales, np.zeros(4), axis, TensorType.INT8).table()
    bias = graph.add_constant("bias", np.array([8, -9, 5, 100], np.int32))
    y = graph.append(FullyConnected(x, weights, bias), "y").output
    y.quantization = Affine.single(0.5, 0, TensorType.INT8).table()
    graph.outputs = [y]
    if axis:
        with pytest.raises(QuantizeError, match="nothing to simulate"):
            simulate(model)
        return
    made = simulate(model).model
    codes = np.array([[1, -2, 3, 4]], np.int8)
    (found,) = Interpreter(made).run({"x": codes}).values()
    real = 0.5 * codes @ (np.arange(-8, 8).reshape(4, 4) * scales[:, None]).T
    wanted = real + np.array([8, -9, 5, 100]) * scales * 0.5
    np.testing.assert_array_equal(found, np.clip(np.rint(wanted / 0.5), -128, 127))


def test_a_result_of_plain_integers_keeps_its_operator_on_integers() -> None:
    """NEG gives what it reads: a result without a scale cannot be the integers of a real number."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4), TensorType.INT8)
    x.quantization = Affine.single(0.5, 0, TensorType.INT8).table()
    twice = graph.append(Add(x, x), "twice").output
    twice.quantization = Affine.single(1.0, 0, TensorType.INT8).table()
    y = graph.append(Neg(twice), "y").output
    assert y.quantization is None
    graph.outputs = [y]
    made = simulate(model)
    assert [w for w in made.report.warnings if "NEG 'y' stays on integers" in w]
    assert not [f for f in verify(made.model) if f.severity is Severity.ERROR]
    codes = np.array([[1, -2, 3, 4]], np.int8)
    (found,) = Interpreter(made.model).run({"x": codes}).values()
    np.testing.assert_array_equal(found, -codes)
