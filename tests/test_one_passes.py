"""Samsung ONE's tests of circle2circle, and what old converters wrote as CUSTOM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.quantize import Quantize
from luciole.ir.quantization import Affine
from luciole.ir.unknown_op import UnknownOp
from luciole.schema.enums import BuiltinOperator
from tests.one_passes import REASONS, outcomes
from tests.support import data_path


def test_ones_tests_hold_but_for_those_with_a_reason() -> None:
    found = outcomes(data_path("one_passes"))
    assert len(found) == 56
    broken = {one.test for one in found if not one.holds}
    assert broken == set(REASONS) & {one.test for one in found}
    assert sum(one.distance is not None for one in found) > 40


def custom(code: str, operands: Sequence[Array], *shapes: tuple[int, ...]) -> Model:
    """A model of one CUSTOM operator: what is no constant of int32 is an input."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    values = [
        graph.add_constant(f"c{i}", a) if a.dtype == np.int32 else graph.add_input(f"x{i}", a.shape)
        for i, a in enumerate(operands)
    ]
    results = [
        graph.add_value(Value(f"y{i}", TensorType.FLOAT32, shape)) for i, shape in enumerate(shapes)
    ]
    op = UnknownOp(BuiltinOperator.CUSTOM, values, custom_code=code)
    graph.append(op, results=results)
    graph.outputs = results
    return model


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(0, 1, shape).astype(np.float32)


CASES: dict[str, tuple[str, tuple[Array, ...], Callable[..., Array]]] = {
    "AddV2": ("resolve_customop_add", (numbers(2, 3), numbers(3)), np.add),
    "BatchMatMulV2": ("resolve_customop_batchmatmul", (numbers(2, 3), numbers(3, 4)), np.matmul),
    "MatMul": ("resolve_customop_matmul", (numbers(2, 3), numbers(3, 4)), np.matmul),
    "BroadcastTo": (
        "resolve_former_customop",
        (numbers(3), np.array([2, 3], np.int32)),
        np.broadcast_to,
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_custom_operators_of_old_converters_run(code: str) -> None:
    name, operands, compute = CASES[code]
    expected = compute(*operands)
    simpler = luciole.optimize(custom(code, operands, expected.shape), [name])
    assert not any(isinstance(op, UnknownOp) for op in simpler.graph.ops)
    given = {f"x{i}": a for i, a in enumerate(operands) if a.dtype != np.int32}
    (found,) = luciole.Interpreter(simpler).run(given).values()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_split_v_of_old_converters_runs() -> None:
    x = numbers(2, 5)
    sizes, axis = np.array([2, 3], np.int32), np.array(1, np.int32)
    model = custom("SplitV", (x, sizes, axis), (2, 2), (2, 3))
    simpler = luciole.optimize(model, ["resolve_customop_splitv"])
    first, second = luciole.Interpreter(simpler).run({"x0": x}).values()
    assert np.array_equal(first, x[:, :2])
    assert np.array_equal(second, x[:, 2:])


def litert(model: Model, x: Array) -> list[Array]:
    """Run a model of one input in LiteRT."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    peer = runtime.Interpreter(model_content=luciole.to_bytes(model, ".tflite"))
    peer.allocate_tensors()
    peer.set_tensor(peer.get_input_details()[0]["index"], x)
    peer.invoke()
    return [peer.get_tensor(detail["index"]) for detail in peer.get_output_details()]


@pytest.mark.parametrize("with_batch", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_max_pool_with_argmax_of_old_converters_gives_tensorflows_numbers(
    padding: str, with_batch: bool
) -> None:
    tf = pytest.importorskip("tensorflow")
    x = np.random.default_rng(1).integers(-4, 4, (2, 7, 8, 3)).astype(np.float32)
    attributes = {"include_batch_in_index": with_batch, "padding": padding}
    attributes |= {"ksize": [1, 3, 2, 1], "strides": [1, 2, 3, 1]}
    expected = tf.nn.max_pool_with_argmax(
        x, (3, 2), (2, 3), padding, include_batch_in_index=with_batch
    )
    largest, index = (tensor.numpy() for tensor in expected)
    model = custom("MaxPoolWithArgmax", (x,), largest.shape, index.shape)
    (op,) = model.graph.ops
    assert isinstance(op, UnknownOp)
    op.custom_options = np.frombuffer(flexbuffers.Dumps(attributes), np.uint8)
    op.results[1].dtype = TensorType.INT64
    simpler = luciole.optimize(model, ["resolve_customop_max_pool_with_argmax"])
    ours = luciole.Interpreter(simpler).run({"x0": x}).values()
    for first, second in (ours, litert(simpler, x)):
        assert np.array_equal(first, largest)
        assert np.array_equal(second, index)


def quantized_twice(*scales: float) -> Model:
    """QUANTIZE of one tensor to INT8 by several scales."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (4,))
    for place, scale in enumerate(scales):
        graph.append(Quantize(x), f"y{place}").output.dtype = TensorType.INT8
        graph.ops[-1].output.quantization = Affine.single(scale, 0, TensorType.INT8).table()
    graph.outputs = [op.output for op in graph.ops]
    return model


def test_integers_of_other_scales_are_no_common_subexpression() -> None:
    model = quantized_twice(1.0, 0.5, 1.0, 0.5)
    simpler = luciole.optimize(model, ["common_subexpression_elimination"])
    assert [op.kind for op in simpler.graph.ops].count("QUANTIZE") == 2
    x = np.array([1, 2, -3, 4], np.float32)
    before, after = (luciole.Interpreter(m).run({"x": x}) for m in (model, simpler))
    for name, array in before.items():
        assert np.array_equal(after[name], array)
