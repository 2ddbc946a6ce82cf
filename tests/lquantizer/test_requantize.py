"""Networks of INT8 become those of UINT8 and come back, equal wherever kernels round alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Graph, Model, Op, TensorType
from luciole.ir.findings import Severity
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.quantization import Affine, stored_parameters
from luciole.ir.verify import verify
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.rewrite.integers import weight_slot
from tests.lquantizer.networks import images
from tests.lquantizer.runs import integers_of_litert, quantized
from tests.networks import network, random
from tests.support import data_path

SHIFT = {"uint8": 128, "int8": -128}


def int8(model: Model, granularity: str = "tensor") -> Model:
    ends = {"input_type": "int8", "output_type": "int8", "ranges": "min_max"}
    return quantized(model, scheme="int8", granularity=granularity, rescale="none", **ends)


@cache
def of_images(granularity: str = "tensor") -> Model:
    """The network of images, made once for all tests, which leave it as it is."""
    return int8(images(), granularity)


def codes_of(model: Model, x: Array) -> dict[str, Array]:
    interpreter = luciole.Interpreter(model, keep_tensors=True)
    interpreter.run({model.graph.inputs[0].name: x})
    return {
        v.name: interpreter.get_tensor(k)
        for k, v in enumerate(model.graph.values)
        if v.producer is not None
    }


def given(model: Model) -> Array:
    return np.random.default_rng(4).integers(-128, 128, model.graph.inputs[0].dims)


def is_below(op: Op, kinds: tuple[type[Op], ...]) -> bool:
    """Tell whether an operator is of some kinds, or reads what one of them made."""
    makers = [v.producer.op for v in op.operands if v is not None and v.producer is not None]
    return isinstance(op, kinds) or any(is_below(maker, kinds) for maker in makers)


def test_integers_are_128_apart() -> None:
    """AVERAGE_POOL_2D rounds halves away from the code 0, which is elsewhere."""
    model = of_images()
    made = luciole.requantize(model, "uint8")
    assert made.report.warnings == []
    x = given(model)
    before = codes_of(model, x.astype(np.int8))
    after = codes_of(made.model, (x + 128).astype(np.uint8))
    compared = 0
    for op in model.graph.ops:
        off = after[op.output.name].astype(int) - before[op.output.name] - 128
        if not is_below(op, (AveragePool2D,)):
            assert not off.any(), op.kind
            compared += 1
        if isinstance(op, AveragePool2D):
            assert np.abs(off).max() <= 1
    assert compared >= 7


@pytest.mark.parametrize("name", ["ad01_int8"])
def test_a_file_of_the_converter_with_one_scale_for_each_layer_gives_the_same(name: str) -> None:
    model = luciole.load(data_path(f"models/{name}.tflite"))
    made = luciole.requantize(model, "uint8")
    x = given(model)
    before = codes_of(model, x.astype(np.int8))
    after = codes_of(made.model, (x + 128).astype(np.uint8))
    for tensor, codes in before.items():
        np.testing.assert_array_equal(codes.astype(int) + 128, after[tensor])


@pytest.mark.parametrize("granularity", ["channel", "tensor"])
def test_what_is_written_is_what_litert_computes(granularity: str, tmp_path: Path) -> None:
    path = tmp_path / "u.tflite"
    made = luciole.requantize(of_images(granularity), "uint8").model
    luciole.save(made, path)
    x = (given(made) + 128).astype(np.uint8)
    ours, theirs = codes_of(made, x), integers_of_litert(path, x)
    both = ours.keys() & theirs.keys()
    assert len(both) > 12
    for name in both:
        np.testing.assert_array_equal(ours[name], theirs[name], name)


def test_there_and_back_is_the_same_network() -> None:
    model = of_images()
    twice = luciole.requantize(luciole.requantize(model, "uint8").model, "int8").model
    assert [op.kind for op in twice.graph.ops] == [op.kind for op in model.graph.ops]
    for old, new in zip(model.graph.ops, twice.graph.ops, strict=True):
        for a, b in zip(old.operands, new.operands, strict=True):
            assert a is not None
            assert b is not None
            assert (a.name, a.dtype) == (b.name, b.dtype)
            np.testing.assert_array_equal(a.data, b.data) if a.is_constant else None
            assert stored_parameters(a)[1].tolist() == stored_parameters(b)[1].tolist()


def test_weights_with_a_scale_for_each_channel_are_rounded_again_and_it_is_said() -> None:
    model = of_images("channel")
    made = luciole.requantize(model, "uint8")
    (warning,) = made.report.warnings
    assert "were rounded again: UINT8 wants one scale for each layer" in warning
    for op in made.model.graph.ops:
        if op.quant is not None and op.quant.weight is not None:
            _, value, _ = weight_slot(op)
            affine = Affine.of(value, "it")
            assert (affine.scale.size, value.dtype) == (1, TensorType.UINT8)
            assert affine.zero_point.tolist() == [128]
    x = given(model)
    (before,) = luciole.Interpreter(model).run({"x": x.astype(np.int8)}).values()
    (after,) = luciole.Interpreter(made.model).run({"x": (x + 128).astype(np.uint8)}).values()
    assert np.abs(before.astype(int) + 128 - after).max() < 12


def asymmetric() -> Model:
    """A dense layer as toco wrote it: weights of UINT8 around another code than 128."""
    model = luciole.requantize(int8(network((20, 4))), "uint8").model
    (layer,) = [op for op in model.graph.ops if op.kind == "FULLY_CONNECTED"]
    _, weights, _ = weight_slot(layer)
    weights.quantization = Affine.single(0.01, 40, TensorType.UINT8).table()
    return model


def test_weights_around_another_code_get_the_zero_point_0() -> None:
    model = asymmetric()
    made = luciole.requantize(model, "int8")
    (layer,) = [op for op in made.model.graph.ops if op.kind == "FULLY_CONNECTED"]
    affine = Affine.of(weight_slot(layer)[1], "it")
    assert not affine.zero_point.any()
    assert "INT8 wants the zero point 0" in made.report.warnings[0]
    x = given(model)
    (before,) = luciole.Interpreter(model).run({"x": (x + 128).astype(np.uint8)}).values()
    (after,) = luciole.Interpreter(made.model).run({"x": x.astype(np.int8)}).values()
    assert np.abs(before.astype(int) - 128 - after).max() <= 4


def test_what_has_no_kernel_on_uint8_stays_between_two_shifts() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 3, 4))
    other = graph.add_constant("c", random(1, 1, 4, 5))
    product = graph.append(BatchMatMul(x, other), "product").output
    shape = graph.add_constant("shape", np.array([1, 15], np.int32))
    graph.outputs = [graph.append(Reshape(product, shape, new_shape=(1, 15)), "y").output]
    before = int8(model)
    made = luciole.requantize(before, "uint8")
    kinds = [op.kind for op in made.model.graph.ops]
    assert kinds == ["QUANTIZE", "BATCH_MATMUL", "QUANTIZE", "RESHAPE"]
    assert "BATCH_MATMUL 'product" in made.report.warnings[0]
    codes = given(before)
    (old,) = luciole.Interpreter(before).run({"x": codes.astype(np.int8)}).values()
    (new,) = luciole.Interpreter(made.model).run({"x": (codes + 128).astype(np.uint8)}).values()
    np.testing.assert_array_equal(old.astype(int) + 128, new)


def test_graphs_that_are_called_keep_their_integers() -> None:
    """A loop that doubles codes three times: its graphs stay INT8, what is around is UINT8."""
    before = looped()
    made = luciole.requantize(before, "uint8")
    assert made.report.warnings == [
        "WHILE 'looped' has no kernel on UINT8: it stays between two QUANTIZE"
    ]
    assert not [f for f in verify(made.model) if f.severity is Severity.ERROR]
    codes = np.array([[3, -5, 0, 11]])
    (old,) = luciole.Interpreter(before).run({"x": codes.astype(np.int8)}).values()
    np.testing.assert_array_equal(old, codes.reshape(2, 2) * 8)
    (new,) = luciole.Interpreter(made.model).run({"x": (codes + 128).astype(np.uint8)}).values()
    np.testing.assert_array_equal(new, codes.reshape(2, 2) * 8 + 128)


def looped() -> Model:
    """ADD to itself of codes with one scale, three times over, and RESHAPE."""
    model, scale = Model(), Affine.single(0.5, 0, TensorType.INT8).table()
    main, condition, body = (model.add_graph(Graph(n)) for n in ("main", "condition", "body"))
    given = [graph.add_input("x", (1, 4), TensorType.INT8) for graph in (main, condition, body)]
    seen, done = (graph.add_input("n", (1,), TensorType.INT32) for graph in (condition, body))
    three = condition.add_constant("three", np.array([3], np.int32))
    condition.outputs = [condition.append(Less(seen, three), "go on").output]
    twice = body.append(Add(given[2], given[2]), "twice").output
    one = body.add_constant("one", np.array([1], np.int32))
    body.outputs = [twice, body.append(Add(done, one), "counted").output]
    begin = main.add_constant("begin", np.array([0], np.int32))
    loop = While((given[0], begin), condition_graph=condition, body_graph=body)
    last = main.append(loop, "looped", "count").results[0]
    shape = main.add_constant("shape", np.array([2, 2], np.int32))
    end = main.append(Reshape(last, shape, new_shape=(2, 2)), "y").output
    for value in (*given, twice, last, end):
        value.quantization = scale
    main.outputs = [end]
    return model


@pytest.mark.parametrize("to", ["int8", "uint8"])
def test_requantize_refuses_a_network_without_the_other_type(to: str) -> None:
    with pytest.raises(QuantizeError, match="nothing to requantize: no tensor between operators"):
        luciole.requantize(network(), to)


def test_requantize_refuses_other_types() -> None:
    with pytest.raises(QuantizeError, match="requantize is 'int4': uint8, int8 are possible"):
        luciole.requantize(network(), "int4")


def test_dynamic_weights_are_no_tensor_between_operators() -> None:
    with pytest.raises(QuantizeError, match="no tensor between operators is INT8"):
        luciole.requantize(quantized(images(), scheme="dynamic"), "uint8")
