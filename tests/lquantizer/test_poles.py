"""Networks with poles as integers: nothing is divided by 0 and no logarithm is taken of it, in the
written file, here and in LiteRT, on records of any amplitude.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Model, TensorType, Value
from luciole.ir.analysis.poles import poles_of, refused_pole
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Mul, Pow, Sub
from luciole.ir.ops.elementwise_unary import Abs, Exp, Log, Rsqrt, Sqrt
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reduce import Mean, Sum
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.softmax import Softmax
from luciole.ir.quantization import Affine
from luciole.lquantizer import UniformOptions, quantize_uniform
from tests.lquantizer.networks import Builder
from tests.networks import random
from tests.support import litert_records

SCHEMES = ["int8", "uint8", "w4a8", "int16x8"]
LAST = np.array([1], np.int32)


def layer(b: Builder, x: Value, *, bias: bool = True) -> Value:
    constant = b.constant(random(3, 16)) if bias else None
    return b.add(FullyConnected(x, b.weights(16, 16), constant))


def scalar(b: Builder, number: float) -> Value:
    return b.constant(np.array([number], np.float32))


def normalized(b: Builder, x: Value) -> Value:
    """(x - mean) / sqrt(variance + eps), as converters from PyTorch write it."""
    far = b.add(Sub(x, b.add(Mean(x, b.constant(LAST), keep_dims=True))))
    variance = b.add(Mean(b.add(Mul(far, far)), b.constant(LAST), keep_dims=True))
    return b.add(Div(far, b.add(Sqrt(b.add(Add(variance, scalar(b, 1e-5)))))))


def shared(b: Builder, x: Value) -> Value:
    """The same whose variance something else reads, too."""
    square = b.add(Mean(b.add(Mul(x, x)), b.constant(LAST), keep_dims=True))
    raised = b.add(Add(square, scalar(b, 1e-5)))
    return b.add(Add(b.add(Mul(x, b.add(Pow(raised, scalar(b, -0.5))))), raised))


def unit(b: Builder, x: Value) -> Value:
    """x over its norm, or over next to nothing."""
    total = b.add(Sum(b.add(Mul(x, x)), b.constant(LAST), keep_dims=True))
    return b.add(Div(x, b.add(Maximum(b.add(Sqrt(total)), scalar(b, 1e-12)))))


def shares(b: Builder, x: Value) -> Value:
    """A softmax spelled out."""
    powers = b.add(Exp(x))
    return b.add(Div(powers, b.add(Sum(powers, b.constant(LAST), keep_dims=True))))


def guarded(b: Builder, x: Value) -> Value:
    """1 / x, but where x is next to 0."""
    near = b.add(Less(b.add(Abs(x)), scalar(b, 0.01)))
    return b.add(SelectV2(near, x, b.add(Div(scalar(b, 0.01), x))))


def logarithm(b: Builder, x: Value) -> Value:
    return b.add(Log(b.add(Add(b.add(Relu(x)), scalar(b, 1e-4)))))


MAKERS = [normalized, shared, unit, shares, guarded, logarithm]


def network(maker: Any, *, bias: bool = True) -> Model:
    """Two layers with something between; without a bias that comes as near to 0 as records do."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    b.graph.outputs = [layer(b, maker(b, layer(b, x, bias=bias)))]
    return b.model


def records(count: int, seed: int) -> Array:
    """Records of very uneven amplitude."""
    x = random(seed, count, 16) * np.geomspace(0.02, 3, count, dtype=np.float32)[:, None]
    return np.random.default_rng(seed).permutation(x)


def quantized(maker: Any, scheme: str, bias: bool) -> Model:
    """Quantize a network, once for all tests, which leave it as it is."""
    return whole(maker, scheme, bias).model


@cache
def whole(maker: Any, scheme: str, bias: bool = True) -> luciole.Result:
    data = {"x": records(200, 1)}
    return luciole.quantize(network(maker, bias=bias), data, scheme=scheme, proof=False)


def hard() -> Array:
    """Ordinary records, some that are much smaller than any that was seen, and nothing at all."""
    x = records(24, 9)
    return np.concatenate([x, x[:5] * 1e-4, x[:5] * 1e-7, np.zeros((1, 16), np.float32)])


def answers(model: bytes | Model, x: Array) -> Array:
    """Run a model, or what is written of one, record by record."""
    if isinstance(model, bytes):
        interpreter = luciole.Interpreter(model_content=model)
    else:
        interpreter = luciole.Interpreter(model)
    runs = (interpreter.run({"x": row[None]}) for row in x)
    return np.concatenate([next(iter(run.values())).copy() for run in runs])


def decibels(wanted: Array, found: Array) -> float:
    error = np.square(wanted - found, dtype=np.float64).sum()
    return float(10 * np.log10(np.square(wanted, dtype=np.float64).sum() / error))


@pytest.mark.parametrize(
    ("maker", "scheme", "bias"),
    [
        *((maker, "int8", bias) for maker in MAKERS for bias in (True, False)),
        *((maker, "int16x8", bias) for maker in MAKERS for bias in (True, False)),
        *((maker, scheme, True) for maker in (normalized, guarded) for scheme in ("uint8", "w4a8")),
    ],
)
def test_written_files_meet_no_pole_on_any_record(maker: Any, scheme: str, bias: bool) -> None:
    model, made = network(maker, bias=bias), quantized(maker, scheme, bias)
    content, x = to_bytes(made, "tflite"), hard()
    wanted, ours = answers(model, x), answers(content, x)
    (theirs,) = litert_records(content, [x])
    assert np.isfinite(wanted).all()
    assert np.isfinite(ours).all()
    assert np.isfinite(theirs).all()
    poles = [pole for op in made.graph.ops if (pole := refused_pole(op)) is not None]
    assert all(0 not in pole.refused for pole in poles)  # roots are refused where none is below 0
    if bias:  # else 8 bits tell nothing of what is 100 times smaller than other records
        least = 12 if scheme == "w4a8" else 17
        assert min(decibels(wanted, ours), decibels(wanted, theirs)) > least


@pytest.mark.parametrize("maker", [maker for maker in MAKERS if maker is not guarded])
@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_no_tensor_inside_is_infinite_on_any_record(maker: Any, scheme: str) -> None:
    """A QUANTIZE would make some number of it that nobody would see."""
    work = from_bytes(to_bytes(quantized(maker, scheme, False)))
    graph = work.graph
    graph.outputs = [v for v in graph.values if v.producer and v.dtype == TensorType.FLOAT32]
    interpreter = luciole.Interpreter(work)
    for row in hard():
        assert all(np.isfinite(y).all() for y in interpreter.run({"x": row[None]}).values())


@pytest.mark.parametrize("maker", [unit, guarded])
def test_the_report_says_what_a_pole_keeps_float(maker: Any) -> None:
    floats = whole(maker, "int8").report.floats
    (reason,) = [line for line in floats if line.startswith("DIV")]
    assert reason.endswith("its operand y may be 0 in integers, where it has no result")
    others = [line for line in floats if not line.startswith("DIV")]
    assert others
    small = "small inputs decide its result, and integers would lose them"
    assert all(line.endswith(("what it gives would reach a pole", small)) for line in others)


def test_spelled_out_normalization_and_softmax_become_what_has_no_pole_in_reach() -> None:
    for maker, kind in ((normalized, Rsqrt), (shares, Softmax)):
        result = whole(maker, "int8")
        assert result.report.floats == []
        kinds = [type(op) for op in result.model.graph.ops]
        assert kind in kinds
        assert Div not in kinds


def test_nothing_in_front_of_a_pole_is_nan_where_the_float_network_has_numbers() -> None:
    """A SELECT chooses others where x is next to 0: it does so in floats, as DIV does."""
    made = whole(guarded, "int8").model
    read = {type(op): {v.dtype for v in op.operands if v} for op in made.graph.ops}
    assert read[Div] == read[Less] == {TensorType.FLOAT32}
    assert read[SelectV2] == {TensorType.FLOAT32, TensorType.BOOL}


def divided_by_a_layer(*, first: bool = False) -> Model:
    """Two layers, one divided by the other, of an input or of what a ``first`` one makes."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    x = b.add(Abs(layer(b, x, bias=False))) if first else x
    weights = b.constant(np.abs(random(1, 16, 16)))
    divisor = b.add(FullyConnected(x, weights, b.constant(np.full(16, 1e-3, np.float32))))
    b.graph.outputs = [b.add(Div(layer(b, x), divisor))]
    return b.model


def test_a_layer_that_is_divided_by_keeps_floats_and_gets_integer_weights() -> None:
    """Its results would be rounded to 0 at once."""
    model, data = divided_by_a_layer(), np.abs(records(200, 1))
    result = luciole.quantize(model, {"x": data}, scheme="int8", proof=False)
    content, few = to_bytes(result.model, "tflite"), np.abs(hard())
    wanted, ours = answers(model, few), answers(content, few)
    assert np.isfinite(ours).all()
    assert decibels(wanted, ours) > 20
    layers = [op for op in result.model.graph.ops if isinstance(op, FullyConnected)]
    types = {(op.input.dtype, op.weights.dtype) for op in layers}
    assert (TensorType.FLOAT32, TensorType.INT8) in types


def test_a_search_of_bits_leaves_a_layer_that_is_divided_by_in_floats() -> None:
    model, data = divided_by_a_layer(first=True), np.abs(records(200, 1))
    choices: dict[str, Any] = {"scheme": "mixed", "target_drop": 5.0, "proof": False}
    made = luciole.quantize(model, {"x": data}, **choices).model
    types = [op.input.dtype for op in made.graph.ops if isinstance(op, FullyConnected)]
    assert TensorType.FLOAT32 in types
    assert TensorType.INT8 in types


def test_a_constant_is_divided_by_in_integers_unless_some_of_it_is_rounded_to_0() -> None:
    for least, is_integer in ((0.5, True), (1e-4, False)):
        b = Builder()
        x = b.graph.add_input("x", (1, 16))
        divisor = b.constant(np.geomspace(least, 2, 16, dtype=np.float32))
        b.graph.outputs = [b.add(Div(layer(b, x), divisor))]
        data = {"x": records(50, 1)}  # luciole.quantize would multiply by the reciprocal
        graph = quantize_uniform(b.model, data, UniformOptions(scheme="int8")).model.graph
        (op,) = [op for op in graph.ops if isinstance(op, Div)]
        assert (op.x.dtype == TensorType.INT8) == is_integer


def test_a_power_has_a_pole_unless_its_exponents_are_known_to_be_0_or_more() -> None:
    b = Builder()
    x = b.graph.add_input("x", (1, 4))
    exponents = [scalar(b, 2.0), scalar(b, -0.5), x]
    assert [len(poles_of(Pow(x, y))) for y in exponents] == [0, 1, 1]


def test_poles_are_found_where_ranges_are_given_and_no_data(tmp_path: Path) -> None:
    model = network(normalized)
    nearest: Any = {"scheme": "int8", "rounding": "nearest", "rescale": "none", "proof": False}
    first = luciole.quantize(model, {"x": records(200, 1)}, **nearest)
    assert first.ranges is not None
    first.ranges.save(tmp_path / "ranges.json")
    again = luciole.quantize(model, ranges_from=tmp_path / "ranges.json", **nearest)
    assert to_bytes(again.model) == to_bytes(first.model)


def test_roots_are_integers_only_where_none_of_these_is_below_0() -> None:
    grids = {point: {"x": Affine.single(0.1, point, TensorType.INT8)} for point in (-128, -127)}
    b = Builder()
    x = b.graph.add_input("x", (1, 4))
    for op in (Sqrt(x), Rsqrt(x)):
        assert refused_pole(op, grids[-128]) is None
        assert refused_pole(op, grids[-127]) is op.poles[0]


@pytest.mark.parametrize("as_difference", [True, False])
def test_roots_of_16_bits_are_integers_where_nothing_below_0_can_come(as_difference: bool) -> None:
    """A variance is that as a difference, too, but rounded ones may be negative."""
    b = Builder()
    y = layer(b, b.graph.add_input("x", (1, 16)))
    square = b.add(Mean(b.add(Mul(y, y)), b.constant(LAST), keep_dims=True))
    mean = b.add(Mean(y, b.constant(LAST), keep_dims=True))
    other = Sub(square, b.add(Mul(mean, mean))) if as_difference else Add(square, square)
    b.graph.outputs = [b.add(Sqrt(b.add(other)))]
    data = {"x": random(1, 50, 16)}
    graph = luciole.quantize(b.model, data, scheme="int16x8", proof=False).model.graph
    (root,) = [op for op in graph.ops if isinstance(op, Sqrt)]
    assert root.x.dtype == (TensorType.FLOAT32 if as_difference else TensorType.INT16)


def test_the_numbers_of_one_are_kept_with_a_warning() -> None:
    result = luciole.quantize(network(normalized), {"x": records(50, 1)}, compatible="one")
    (warning,) = [line for line in result.report.warnings if "DIV" in line]
    assert warning.endswith("its operand y may be 0 in integers, where it has no result")


def test_a_division_between_quantized_tensors_of_onnx_computes_as_onnxruntime_does() -> None:
    helper = pytest.importorskip("onnx.helper")
    runtime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, numpy_helper

    from luciole.importers.onnx.model import from_bytes

    nodes = []
    for name, source in (("a", "x"), ("b", "y"), ("result", "quotient")):
        grid = ["scale", "zero"]
        nodes.append(helper.make_node("QuantizeLinear", [source, *grid], [f"{name}/codes"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}/codes", *grid], [name]))
    nodes.insert(4, helper.make_node("Div", ["a", "b"], ["quotient"]))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        for name in ("x", "y", "result")
    ]
    constants = [
        numpy_helper.from_array(np.array(0.125, np.float32), "scale"),
        numpy_helper.from_array(np.array(-3, np.int8), "zero"),
    ]
    graph = helper.make_graph(nodes, "division", ends[:2], ends[2:], constants)
    opset = [helper.make_opsetid("", 13)]
    data = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    x = np.array([[1, -1, 2, 3]], np.float32)
    y = np.array([[0.5, 0.25, 0.01, -0.25]], np.float32)  # one of which is rounded to 0
    (wanted,) = runtime.InferenceSession(data).run(None, {"x": x, "y": y})
    (ours,) = luciole.Interpreter(from_bytes(data).model).run({"x": x, "y": y}).values()
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_record_of_one_number_costs_others_nothing(scheme: str) -> None:
    """Its inverse deviation, 1 / sqrt(1e-5), would stretch the step of all."""
    b = Builder()
    x = layer(b, b.graph.add_input("x", (1, 16)), bias=False)
    moved = b.add(Sub(x, b.add(Mean(x, b.graph.add_constant("axes", LAST), keep_dims=True))))
    square = b.add(Mul(moved, moved))
    variance = b.add(Mean(square, b.graph.add_constant("axes_2", LAST), keep_dims=True))
    root = b.add(Sqrt(b.add(Add(variance, b.constant(np.array(1e-5, np.float32))))))
    b.graph.outputs = [layer(b, b.add(Div(moved, root)))]
    records = random(9, 64, 16)
    records[17] = 0
    result = luciole.quantize(b.model, records, scheme=scheme, ranges="min_max", proof=False)
    others = np.delete(records, 17, 0)
    expected, made = (luciole.run(m, others) for m in (b.model, result.model))
    (real,), (got,) = expected.values(), made.values()
    assert 10 * np.log10(np.mean(real**2) / np.mean((real - got) ** 2)) > 24
