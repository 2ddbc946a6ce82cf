"""Weights with a scale for each block: read, kept, shown, and run as the numbers they stand for."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole import Interpreter
from luciole.drawing.tensors import quantization_json
from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.interpreter import compile_graph
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.analysis.weights import weights_of
from luciole.ir.blockwise import Blockwise
from luciole.ir.dtypes import limits_of
from luciole.ir.op import Op
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.text.listing import dump
from luciole.kernels.layers.floats import blocks as blocks_kernel
from luciole.schema.enums import ActivationFunctionType
from luciole.schema.tables import BlockwiseQuantization, QuantizationParameters
from tests.compiler.side_by_side import SideBySide, sound
from tests.compiler_support import built, close, needs_compiler, program_of
from tests.support import litert

OUTPUTS, INPUTS, SIZE = 8, 64, 32
_RNG = np.random.default_rng(3)
CODES = _RNG.integers(-8, 8, (OUTPUTS, INPUTS)).astype(np.int8)
SCALES = _RNG.uniform(0.01, 0.05, (OUTPUTS, INPUTS // SIZE)).astype(np.float16)
REAL = CODES * np.repeat(SCALES.astype(np.float32), SIZE, axis=1)


def blocks(graph: Graph, scales: Array = SCALES, size: int = SIZE) -> Value:
    """Weights of four bits, behind the tensor of their scales."""
    weights = graph.add_constant("w", CODES, TensorType.INT4)
    weights.block_tensors = graph.add_constant("s", scales), None
    details = BlockwiseQuantization(scales=0, zero_points=-1, block_size=size)
    weights.quantization = QuantizationParameters(details=details)
    return weights


def model_of(cls: type[Op], x: Array, version: int = 1, **given: Any) -> Model:
    """A model of one operator on an input and weights of blocks."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_input("x", x.shape)
    value.dtype = TensorType.INT32 if x.dtype == np.int32 else TensorType.FLOAT32
    op = cls(value, blocks(graph, **given))
    result = graph.add_value(Value("y", TensorType.FLOAT32))
    graph.append(op, results=[result])
    op.version, result.shape = version, op.result_shapes()[0]
    graph.outputs = [result]
    return model


def run(model: Model, *inputs: Array) -> Array:
    """The first result, the model being read from a file."""
    interpreter = Interpreter(model_content=to_bytes(model, "tflite"))
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def dense() -> tuple[Model, Array]:
    """A dense layer and an input."""
    x = np.random.default_rng(4).normal(size=(2, INPUTS)).astype(np.float32)
    return model_of(FullyConnected, x, 12), x


def test_dense_layers_compute_with_the_numbers_that_blocks_stand_for() -> None:
    model, x = dense()
    result = run(model, x)
    np.testing.assert_allclose(result, x @ REAL.T, rtol=1e-6, atol=1e-5)
    graph = model.graph
    plan = compile_graph(graph, {graph.inputs[0]: x.shape})
    assert [step.native is not None for step in plan.steps] == [True]


def layer(
    rows: int,
    outputs: int,
    n: int,
    size: int,
    dtype: TensorType = TensorType.INT4,
    **attributes: Any,
) -> tuple[Model, Array]:
    """A dense layer with blocks of ``size`` and a bias, and what it should give."""
    rng, (low, high) = np.random.default_rng(n + rows), limits_of(dtype)
    codes = rng.integers(low, high, (outputs, n), endpoint=True).astype(np.int8)
    scales = rng.uniform(0.01, 0.05, (outputs, n // size)).astype(np.float16)
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (rows, n))
    x.dtype = TensorType.FLOAT32
    weights = graph.add_constant("w", codes, dtype)
    weights.block_tensors = graph.add_constant("s", scales), None
    details = BlockwiseQuantization(scales=0, zero_points=-1, block_size=size)
    weights.quantization = QuantizationParameters(details=details)
    bias = graph.add_constant("b", rng.normal(size=outputs).astype(np.float32))
    op = FullyConnected(x, weights, bias, **attributes)
    graph.append(op, "y")
    graph.outputs = [op.output]
    real = codes * np.repeat(scales.astype(np.float32), size, axis=1)
    return model, real


@pytest.mark.parametrize("large", [1, blocks_kernel.LARGE])
@pytest.mark.parametrize("size", [32, 64, 128, 256])
@pytest.mark.parametrize(("rows", "outputs"), [(1, 1), (1, 129), (4, 16), (3, 33), (20, 33)])
def test_blocks_run_compiled(
    rows: int, outputs: int, size: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy's product with the real numbers that blocks stand for is what comes out; few rows read
    large weights as they are.
    """
    monkeypatch.setattr(blocks_kernel, "LARGE", large)
    relu = ActivationFunctionType.RELU
    model, real = layer(rows, outputs, 256, size, activation=relu)
    x = np.random.default_rng(1).normal(size=(rows, 256)).astype(np.float32)
    bias = model.graph.ops[0].operands[2]
    assert bias is not None
    assert bias.data is not None
    want = np.maximum(x.astype(np.float64) @ real.T + bias.data, 0)
    plan = compile_graph(model.graph, {model.graph.inputs[0]: x.shape})
    (step,) = plan.steps
    assert step.native is not None
    as_they_are = any(array.dtype == np.uint8 for array in step.native.owns)
    assert as_they_are == (rows <= blocks_kernel.FEW_ROWS and large == 1)
    np.testing.assert_allclose(run(model, x), want, rtol=1e-5, atol=1e-5)


def test_blocks_with_zero_points_run_compiled_as_real_numbers() -> None:
    model, real = layer(3, 8, 64, 32)
    points = model.graph.add_constant("z", np.full((8, 2), 3, np.int8))
    weights = model.graph.ops[0].operands[1]
    assert weights is not None
    weights.block_tensors = weights.block_tensors[0], points
    x = np.eye(3, 64, dtype=np.float32)
    plan = compile_graph(model.graph, {model.graph.inputs[0]: x.shape})
    assert [step.native is not None for step in plan.steps] == [True]
    scales = np.asarray(weights.block_tensors[0].data, np.float32)  # type: ignore[union-attr]
    want = x @ (real - 3 * np.repeat(scales, 32, axis=1)).T
    got = Interpreter(model)
    got.allocate_tensors()
    got.set_tensor(got.get_input_details()[0]["index"], x)
    got.invoke()
    bias = model.graph.ops[0].operands[2]
    assert bias is not None
    assert bias.data is not None
    found = got.get_tensor(got.get_output_details()[0]["index"])
    np.testing.assert_allclose(found, want + bias.data, rtol=1e-5, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("dtype", [TensorType.INT4, TensorType.INT8])
def test_blocks_in_c(dtype: TensorType, tmp_path: Path) -> None:
    """Rows of several outputs, as codes and as bytes, give NumPy's products."""
    every, wanted = SideBySide(), []
    for rows, n, activation in ((1, 128, "RELU"), (3, 64, "NONE"), (2, 256, "TANH")):
        kind = ActivationFunctionType[activation]
        model, real = layer(rows, 33, n, 64, dtype, activation=kind)
        x = np.random.default_rng(1).normal(size=(rows, n)).astype(np.float32) / 9
        every.join(model, [x])
        bias = model.graph.ops[0].required(2).contents
        y = x.astype(np.float64) @ real.T + bias
        wanted.append({"RELU": np.maximum(y, 0), "NONE": y, "TANH": np.tanh(y)}[activation])
    sound(every, tmp_path, within=1e-6)
    ran = built(program_of(every.model), tmp_path).run(every.given)
    for found, y in zip(ran, wanted, strict=True):
        close(found, y.astype(np.float32), 1e-6)


def test_litert_which_rounds_inputs_to_8_bits_is_near() -> None:
    model, x = dense()
    (theirs,) = litert(to_bytes(model, "tflite"), [x], "AUTO")
    assert np.abs(run(model, x) - theirs).max() < 0.01 * np.abs(theirs).max()


def test_rows_of_blocks_are_those_of_litert() -> None:
    rows = np.array([1, 0, 5], np.int32)
    model = model_of(EmbeddingLookup, rows, 4)
    (theirs,) = litert(to_bytes(model, "tflite"), [rows])
    np.testing.assert_array_equal(run(model, rows), theirs, strict=True)


def test_dequantized_blocks_are_real_numbers() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(Dequantize(blocks(graph)), "y")
    graph.outputs = [graph.ops[0].output]
    np.testing.assert_array_equal(run(model), REAL)


def test_a_scale_stays_with_its_blocks_wherever_tensors_go() -> None:
    graph = from_bytes(to_bytes(dense()[0], "tflite")).graph
    graph.values.insert(0, graph.add_constant("unused", np.zeros(3, np.float32)))
    graph.values.pop()
    model = graph.model
    assert model is not None
    for other in (model, model.clone(), pickle.loads(pickle.dumps(model))):
        again = {v.name: v for v in from_bytes(to_bytes(other, "tflite")).graph.values}
        assert again["w"].block_tensors == (again["s"], None)
    remove_dead(graph)
    assert [v.name for v in graph.values] == ["x", "w", "s", "y"]
    assert graph.values[1].block_tensors[0] is graph.values[2]


def test_blocks_are_shown() -> None:
    model, _ = dense()
    assert "    Block Quantization: block_size(32) scales(T(0:2) s)\n" in dump(model, "m")
    facts = quantization_json(model.graph.values[1], None)
    assert facts is not None
    assert facts["words"] == "4 bit, evenly spaced, a scale for each 32 along the last axis"


def test_weights_of_blocks_are_read_as_weights() -> None:
    found = weights_of(dense()[0].graph.ops[0])
    assert found is not None
    assert (found.format.bits, found.format.bytes(CODES.shape)) == (4, CODES.size // 2 + 32)
    np.testing.assert_allclose(found.values(), REAL)


def test_blocks_encode_what_they_decode() -> None:
    found = Blockwise.given(dense()[0].graph.values[1])
    assert found is not None
    np.testing.assert_array_equal(found.encode(found.decode(CODES)), CODES)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": 48}, r"does not have whole blocks of 48"),
        ({"size": 0}, r"does not have whole blocks of 0"),
        ({"scales": SCALES[:1]}, r"there are 2 scales of tensor 'w', 16 blocks need one each"),
        ({"scales": SCALES.astype(np.int32)}, r"scales .* are INT32, FLOAT16 is needed"),
    ],
)
def test_verify_refuses_blocks_that_do_not_fit(given: dict[str, Any], sentence: str) -> None:
    x = np.zeros((2, INPUTS), np.float32)
    model = model_of(FullyConnected, x, **given)
    _, findings = import_model(to_bytes(model, "tflite", check=False))
    (found,) = [f for f in findings if f.code == "QUANTIZATION"]
    assert re.search(sentence, found.sentence)
