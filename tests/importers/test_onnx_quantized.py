"""Networks that onnxruntime's own tools quantized: it computes of them what luciole does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.importers.onnx.model import from_proto
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.fully_connected import FullyConnected
from tests.support import litert

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
helper = onnx.helper

FLOAT = 1
SIGNED, UNSIGNED = quantization.QuantType.QInt8, quantization.QuantType.QUInt8
CLOSE = 0.02
"""How far networks whose inputs are quantized row by row may be from ones with one grid for all
rows, as a share of the largest number: onnxruntime's are 0.005 to 0.013 from the float networks.
"""


def numbers(*shape: int, seed: int = 0) -> Array:
    """Random weights whose products with numbers of size 1 have size 1."""
    spread = max(1, int(np.prod(shape[1:]))) ** -0.5
    random = np.random.default_rng(seed).standard_normal(shape) * spread
    return np.asarray(random, np.float32)


def network(nodes: Sequence[Any], shape: Sequence[int], **constants: Array) -> Any:
    """A model of one input, x; the last node's result is its output."""
    x = helper.make_tensor_value_info("x", FLOAT, shape)
    output = helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [output], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def answer(model: Any, x: Array) -> Array:
    """Run a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    # without VNNI, sums of unsigned products saturate unless asked not to
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (result,) = session.run(None, {"x": x})
    return np.asarray(result)


def apart(model: Any, *, seed: int = 3) -> tuple[float, Model]:
    """Return how far luciole is from onnxruntime, as a share of the largest number; its model."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    imported = from_proto(model)
    expected = answer(model, x)
    (result,) = luciole.Interpreter(imported).run({"x": x}).values()
    assert result.shape == expected.shape
    return float(np.abs(result - expected).max() / np.abs(expected).max()), imported


def kinds(model: Model) -> list[str]:
    """List the operators."""
    return [op.kind for op in model.graph.ops]


def dense(rows: int) -> Any:
    """Two dense layers with biases."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["y"], transB=1),
    ]
    constants = {"w": numbers(32, 24), "v": numbers(10, 24, seed=1)}
    return network(nodes, [rows, 32], **constants, b=numbers(24), c=numbers(10))


def images(*sizes: int) -> Any:
    """A convolution, a depthwise one, a grouped one and means; of images of one or two axes."""
    axes, ones = len(sizes), [1] * len(sizes)
    pads = {"pads": ones * 2}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], **pads),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], group=8, strides=[2] * axes, **pads),
        helper.make_node("Conv", ["d", "u", "b"], ["e"], group=2),
        helper.make_node("GlobalAveragePool", ["e"], ["y"]),
    ]
    kernel = [3] * axes
    filters = {"w": numbers(8, 3, *kernel), "v": numbers(8, 1, *kernel), "u": numbers(8, 4, *ones)}
    return network(nodes, [1, 3, *sizes], **filters, b=numbers(8))


def lstm(directions: int) -> Any:
    """A recurrent layer of 5 steps."""
    turns = {"direction": "bidirectional"} if directions == 2 else {}
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=8, **turns)
    weights = {"w": numbers(directions, 32, 12), "r": numbers(directions, 32, 8)}
    return network([node], [5, 1, 12], **weights, b=numbers(directions, 64))


CHOICES = {
    "signed": {"weight_type": SIGNED},
    "channels": {"weight_type": SIGNED, "per_channel": True},
    "unsigned": {"weight_type": UNSIGNED},
    "reduced": {"weight_type": UNSIGNED, "reduce_range": True},
    "asymmetric": {"weight_type": SIGNED, "extra_options": {"WeightSymmetric": False}},
}


@pytest.fixture
def dynamic(tmp_path: Path) -> Callable[..., Any]:
    """Quantize weights as onnxruntime's tutorial does: inputs are quantized when the model runs."""

    def quantized(model: Any, **choices: Any) -> Any:
        path = tmp_path / "dynamic.onnx"
        quantization.quantize_dynamic(model, path, **choices)
        return onnx.load(path)

    return quantized


@pytest.mark.parametrize("choice", CHOICES)
def test_dense_layers_of_dynamic_inputs_are_hybrid_ones(
    dynamic: Callable[..., Any], choice: str
) -> None:
    difference, model = apart(dynamic(dense(1), **CHOICES[choice]))
    assert difference < 1e-6  # a row has the grid of the tensor
    layers = [op for op in model.graph.ops if isinstance(op, FullyConnected)]
    assert {op.weights.dtype for op in layers} == {TensorType.INT8}
    whole = choice not in ("unsigned", "asymmetric")
    assert not whole or kinds(model) == ["FULLY_CONNECTED"] * 2
    assert not {"MATMUL", "ROUND", "REDUCE_MIN"} & set(kinds(model))
    difference, _ = apart(dynamic(dense(4), **CHOICES[choice]))
    assert difference < CLOSE


@pytest.mark.parametrize("sizes", [(9, 7), (12,)], ids=["two axes", "one axis"])
@pytest.mark.parametrize("choice", CHOICES)
def test_convolutions_of_dynamic_inputs_are_hybrid_ones(
    dynamic: Callable[..., Any], choice: str, sizes: tuple[int, ...]
) -> None:
    difference, model = apart(dynamic(images(*sizes), **CHOICES[choice]))
    assert difference < CLOSE
    layers = [op for op in model.graph.ops if "CONV" in op.kind]
    assert len(layers) == (3 if choice not in ("unsigned", "asymmetric") else 6)
    assert {op.operands[1].dtype for op in layers if op.operands[1]} == {TensorType.INT8}


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("choice", ["channels", "unsigned"])
def test_recurrent_layers_of_dynamic_inputs_keep_their_weights(
    dynamic: Callable[..., Any], choice: str, directions: int
) -> None:
    difference, _ = apart(dynamic(lstm(directions), **CHOICES[choice]))
    assert difference < CLOSE  # onnxruntime quantizes states, 5 times one behind the other


def test_what_else_reads_a_dynamic_grid_keeps_it(dynamic: Callable[..., Any]) -> None:
    model = dynamic(dense(1), weight_type=SIGNED)
    grid = next(n for n in model.graph.node if n.op_type == "DynamicQuantizeLinear")
    model.graph.output.append(helper.make_tensor_value_info(grid.output[1], FLOAT, ()))
    x = np.random.default_rng(3).standard_normal((1, 32)).astype(np.float32)
    imported = from_proto(model)
    results = luciole.Interpreter(imported).run({"x": x})
    lowest, highest = min(x.min(), 0), max(x.max(), 0)
    np.testing.assert_allclose(results[grid.output[1]], (highest - lowest) / 255, rtol=1e-6)
    assert kinds(imported).count("FULLY_CONNECTED") == 2
    assert len(model.graph.node) > len(imported.graph.ops)


def test_hybrid_layers_of_dynamic_inputs_run_alike_in_litert(dynamic: Callable[..., Any]) -> None:
    model = from_proto(dynamic(dense(3), **CHOICES["unsigned"]))
    x = np.random.default_rng(5).standard_normal((3, 32)).astype(np.float32)
    (result,) = luciole.Interpreter(model).run({"x": x}).values()
    (expected,) = litert(to_bytes(model, "tflite"), [x])
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


def test_attention_of_dynamic_words_is_hybrid(dynamic: Callable[..., Any]) -> None:
    node = helper.make_node("Attention", ["x", "w", "b"], ["y"], num_heads=4)
    node.domain = "com.microsoft"
    words = network([node], [1, 5, 16], w=numbers(16, 48), b=numbers(48))
    difference, model = apart(dynamic(words, weight_type=SIGNED))
    assert difference < CLOSE
    (layer,) = (op for op in model.graph.ops if isinstance(op, FullyConnected))
    assert layer.weights.dtype == TensorType.INT8


def test_products_of_two_dynamic_inputs_are_exact_sums(dynamic: Callable[..., Any]) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    both = {"weight_type": SIGNED, "extra_options": {"MatMulConstBOnly": False}}
    difference, model = apart(dynamic(network(nodes, [2, 5, 600]), **both))
    assert difference < 1e-6
    assert kinds(model).count("BATCH_MATMUL") == 3  # of 258, 258 and 84 products


def resized() -> Any:
    """A convolution, a RESIZE, which onnxruntime's converter leaves with 32 bits, and shares."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Resize", ["c", "", "s"], ["r"], mode="linear"),
        helper.make_node("Softmax", ["r"], ["y"], axis=1),
    ]
    constants = {"w": numbers(8, 3, 3, 3), "b": numbers(8)}
    return network(nodes, [1, 3, 8, 8], **constants, s=np.array([1, 1, 2, 2], np.float32))


HALF = {"dense": lambda: dense(3), "images": lambda: images(9, 7), "resized": resized}
HALF |= {"lstm": lambda: lstm(2)}


def halved(model: Any, *, keep: bool = True) -> Any:
    """Convert to 16 bits as onnxruntime does: nodes stand in any order, with Cast around some."""
    converter = pytest.importorskip("onnxruntime.transformers.float16")
    return converter.convert_float_to_float16(model, keep_io_types=keep)


@pytest.mark.parametrize("name", HALF)
def test_half_precision_computes_with_32_bits_and_keeps_its_constants(name: str) -> None:
    difference, model = apart(halved(HALF[name]()))
    assert difference < 2e-6  # onnxruntime on processors computes with 32 bits, too
    stored = [v for v in model.graph.values if v.is_constant and v.dtype == TensorType.FLOAT16]
    assert len(stored) >= 2
    assert all(use.op.kind == "DEQUANTIZE" for value in stored for use in value.users)
    computed = [v for op in model.graph.ops for v in op.results]
    assert TensorType.FLOAT16 not in {value.dtype for value in computed}


def test_inputs_and_outputs_of_half_precision_stay() -> None:
    model = halved(dense(3), keep=False)
    imported = from_proto(model)
    x = np.random.default_rng(3).standard_normal((3, 32)).astype(np.float16)
    (result,) = luciole.Interpreter(imported).run({"x": x}).values()
    assert result.dtype == np.float16
    expected = answer(model, x)
    spacing = np.spacing(np.abs(expected).max())  # both round the same sum, in their own order
    assert np.abs(result.astype(float) - expected.astype(float)).max() <= spacing


@pytest.mark.parametrize("scheme", ["int8", "w4a8", "dynamic", "learned", "minifloat:4,4"])
def test_half_precision_goes_through_every_quantizer(scheme: str) -> None:
    file = to_bytes(from_proto(halved(dense(1))), "tflite")
    records = np.random.default_rng(1).standard_normal((40, 32)).astype(np.float32)
    result = luciole.quantize(from_bytes(file), data=records, scheme=scheme)
    assert TensorType.FLOAT16 not in {value.dtype for value in result.model.graph.values}
    assert result.proof is not None
    (output,) = result.proof.outputs
    assert (output.file.snr_db or 0) > (10 if scheme == "learned" else 20)  # learned: 36 records


def test_a_mask_of_infinities_that_was_quantized_is_refused() -> None:
    """It has the scale inf: onnxruntime's tools write such files, which compute no numbers."""
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scale", "point"], ["mask"]),
        helper.make_node("Add", ["x", "mask"], ["y"]),
    ]
    codes, point, scale = np.array([[0, -127]], "b"), np.array(0, "b"), np.array(np.inf, "f")
    model = network(nodes, [1, 2], codes=codes, scale=scale, point=point)
    assert np.isnan(answer(model, np.zeros((1, 2), np.float32))).any()
    with pytest.raises(luciole.LucioleError, match="a scale is inf: infinities"):
        from_proto(model)


class Drawn(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]  # no types
    """Some random records for calibration."""

    def __init__(self, *shape: int) -> None:
        rng = np.random.default_rng(5)
        self._left = [{"x": rng.random(shape, np.float32)} for _ in range(4)]

    def get_next(self) -> dict[str, Array] | None:
        return self._left.pop() if self._left else None


@pytest.mark.parametrize("of", [SIGNED, UNSIGNED])
def test_grey_images_and_pools_before_dense_layers_stay_integers(of: Any, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["y"], transB=1),
    ]
    constants = {"w": numbers(4, 1, 3, 3), "b": numbers(4), "v": numbers(5, 36), "d": numbers(5)}
    source, made = tmp_path / "float.onnx", tmp_path / "static.onnx"
    onnx.save(network(nodes, [1, 1, 8, 8], **constants), source)
    data = Drawn(1, 1, 8, 8)
    quantization.quantize_static(source, made, data, activation_type=of, weight_type=SIGNED)
    far, imported = apart(onnx.load(made))
    assert far < CLOSE
    layers = ["CONV_2D", "MAX_POOL_2D", "TRANSPOSE", "RESHAPE", "FULLY_CONNECTED"]
    assert kinds(imported) == ["QUANTIZE", "RESHAPE", *layers, "DEQUANTIZE"]


@pytest.mark.parametrize("of", [quantization.QuantType.QInt16, quantization.QuantType.QUInt16])
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_tensors_of_16_bits_are_the_numbers_of_their_codes(
    of: Any, domain: str, tmp_path: Path
) -> None:
    """TFLite has no uint16 between layers: rounding is spelled out, and nothing is lost."""
    source, made = tmp_path / "float.onnx", tmp_path / "static.onnx"
    onnx.save(images(8, 8), source)
    quantization.quantize_static(
        source,
        made,
        Drawn(1, 3, 8, 8),
        activation_type=of,
        weight_type=quantization.QuantType.QInt16,
        extra_options={"UseQDQContribOps": bool(domain)},
    )
    model = onnx.load(made)
    assert domain in {node.domain for node in model.graph.node if "Quantize" in node.op_type}
    far, _ = apart(model)
    assert far < 1e-4
