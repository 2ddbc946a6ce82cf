"""Integers in ONNX files whose codes are those of TFLite's kernels, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.exporters import save
from luciole.importers import load
from luciole.ir import Graph, Model, TensorType, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.reduce import Mean
from luciole.ir.quantization import Affine
from luciole.schema.enums import ActivationFunctionType, Padding
from luciole.tools.random_models import dense
from tests.exporters.onnx_support import alone, by_onnxruntime, codes, kinds, ours, same, written
from tests.support import data_path
from tests.tools.running import call

RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6


@pytest.mark.parametrize("name", ["resnet8", "kws", "ad01"])
def test_exact_integers_are_those_of_the_kernels(name: str) -> None:
    model = load(data_path(f"models/{name}_int8.tflite"))
    content = written(model, exact=True)
    for seed in range(3):
        inputs = codes(model, seed)
        np.testing.assert_array_equal(by_onnxruntime(content, inputs)[0], ours(model, inputs)[0])


@pytest.mark.parametrize("scales", [[0.25], [0.25] * 4, [0.01, 0.2, 3.0, 0.5]])
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, RELU6])
def test_exact_filters_under_floats_are_those_of_the_kernels(
    scales: list[float], activation: ActivationFunctionType
) -> None:
    rng, graph = np.random.default_rng(0), Graph("main")
    filter = graph.add_constant("filter", rng.integers(-127, 128, (4, 3, 2, 5)).astype(np.int8))
    table = Affine.channels(np.array(scales), np.zeros(len(scales)), 0, TensorType.INT8).table()
    filter.quantization = table
    bias = graph.add_constant("bias", rng.normal(size=4).astype(np.float32))
    conv = Conv2D(graph.add_input("x", (3, 9, 8, 5)), filter, bias, activation=activation)
    conv.padding, conv.stride_h, conv.stride_w = Padding.SAME, 2, 1
    model = alone(conv, graph, "y")
    content = written(model, exact=True)
    assert kinds(content)["DequantizeLinear"] == 0
    for shift in (0, 3, -100):
        x = [rng.normal(shift, 1, (3, 9, 8, 5)).astype(np.float32)]
        x[0][1] = 0
        same(by_onnxruntime(content, x), ours(model, x))


def int8(graph: Graph, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Value:
    """An input of int8 with a scale and zero point drawn at random."""
    value = graph.add_input(name, shape, TensorType.INT8)
    return scaled(value, float(10 ** rng.uniform(-3, 1)), int(rng.integers(-128, 128)))


def scaled(value: Value, scale: float, zero: int) -> Value:
    value.dtype = TensorType.INT8
    value.quantization = Affine.single(scale, zero, TensorType.INT8).table()
    return value


@pytest.mark.parametrize("seed", range(6))
def test_exact_sums_of_any_scales_are_those_of_the_kernels(seed: int) -> None:
    """Factors below and above 1, a power of two, and results on both sides of 0."""
    rng = np.random.default_rng(seed)
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = int8(graph, "x", (2, 9, 8, 4), rng)
    scales = 10 ** rng.uniform(-4, 0, 4)
    scales[0] = 2.0**-seed
    filter = graph.add_constant("filter", rng.integers(-127, 128, (4, 3, 2, 4)).astype(np.int8))
    filter.quantization = Affine.channels(scales, np.zeros(4), 0, TensorType.INT8).table()
    bias = graph.add_constant("bias", rng.integers(-9999, 9999, 4).astype(np.int32))
    conv = Conv2D(x, filter, bias, padding=Padding.SAME, activation=(RELU6, RELU)[seed % 2])
    conv.stride_h, conv.stride_w = 1 + seed % 2, 1
    y = scaled(graph.append(conv, "y").output, float(10 ** rng.uniform(-2, 1)), 2 * seed - 6)
    pool = AveragePool2D(y, padding=Padding.VALID, filter_height=2, filter_width=3)
    pool.stride_h = pool.stride_w = 1
    pooled = scaled(graph.append(pool, "pooled").output, *affine_numbers(y))
    total = graph.append(Add(y, int8(graph, "z", y.dims, rng), activation=RELU), "sum").output
    scaled(total, float(10 ** rng.uniform(-2, 1)), seed)
    graph.outputs = [y, pooled, total]
    inputs = codes(model, seed)
    content = written(model, exact=True)
    assert kinds(content)["ConvInteger"] == 2
    for a, b in zip(by_onnxruntime(content, inputs), ours(model, inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def affine_numbers(value: Value) -> tuple[float, int]:
    scale, points = Affine.of(value, "a tensor").parameters
    return float(scale[0]), int(points[0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keep_dims", [False, True])
def test_exact_means_and_dense_layers_are_those_of_the_kernels(seed: int, keep_dims: bool) -> None:
    """Behind a convolution, as global pooling is, of any scales."""
    rng = np.random.default_rng(seed)
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = int8(graph, "x", (2, 9, 8, 4), rng)
    filter = graph.add_constant("filter", rng.integers(-127, 128, (6, 1, 1, 4)).astype(np.int8))
    filter.quantization = Affine.channels(np.full(6, 0.01), np.zeros(6), 0, TensorType.INT8).table()
    bias = graph.add_constant("bias", np.zeros(6, np.int32))
    y = graph.append(Conv2D(x, filter, bias, stride_h=1, stride_w=1), "y").output
    scaled(y, affine_numbers(x)[0] * 0.5, int(rng.integers(-128, 128)))
    axes = graph.add_constant("axes", np.array([1, -2] if seed % 2 else [2], np.int32))
    mean = graph.append(Mean(y, axes, keep_dims=keep_dims), "mean").output
    scaled(mean, affine_numbers(y)[0] * 10 ** rng.uniform(-1, 0.5), int(rng.integers(-128, 128)))
    moved = scaled(graph.append(Quantize(mean), "moved").output, affine_numbers(mean)[0] * 0.7, 3)
    weights = graph.add_constant("weights", rng.integers(-127, 128, (5, 6)).astype(np.int8))
    scales = 10 ** rng.uniform(-3, -1, 5 if seed < 4 else 1)
    weights.quantization = Affine.channels(scales, 0 * scales, 0, TensorType.INT8).table()
    offsets = graph.add_constant("offsets", rng.integers(-999, 999, 5).astype(np.int32))
    layer = FullyConnected(moved, weights, offsets if seed else None, activation=RELU)
    layer.keep_num_dims = bool(seed % 3)
    z = scaled(graph.append(layer, "z").output, affine_numbers(mean)[0] * 0.3, 2 * seed - 6)
    graph.outputs = [mean, moved, z]
    inputs = codes(model, seed)
    content = written(model, exact=True)
    assert kinds(content)["DequantizeLinear"] == 0
    for a, b in zip(by_onnxruntime(content, inputs), ours(model, inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_import_names_the_integer_operators_that_have_no_exact_form(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source, target = data_path("models/resnet8_int8.tflite"), tmp_path / "m.onnx"
    name = next(op.name for op in load(source).graph.ops if op.kind == "SOFTMAX")
    said = call(capsys, "import", str(source), "-o", str(target), "--exact").err
    which = f"codes may be a step apart behind SOFTMAX {name!r}: no exact form"
    assert said.strip().endswith(which)
    assert call(capsys, "import", str(source), "-o", str(target)).err == ""


def test_import_refuses_exact_files_of_other_formats(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save(dense([6, 3]), tmp_path / "m.circle")
    given = ["import", str(tmp_path / "m.circle"), "-o", str(tmp_path / "n.circle"), "--exact"]
    text = call(capsys, *given).error(1)
    assert text == ".circle files are exact as they are; .onnx files need it"
