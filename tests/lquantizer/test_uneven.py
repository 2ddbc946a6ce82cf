"""Normalizations of records of uneven size as integers: small records keep their digits, in the
written file, here and in LiteRT.
"""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.elementwise_unary import Rsqrt
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.split import Split
from luciole.lquantizer import UniformOptions, quantize_uniform
from luciole.optimizing import canonical
from tests.lquantizer.networks import Builder
from tests.lquantizer.test_poles import answers, decibels, layer, network, normalized
from tests.networks import random
from tests.support import data_path, litert_records

SHAPES = {"layernorm": (16,), "l2n": (16,), "instnorm": (3, 16, 16), "groupnorm": (3, 16, 16)}
COUNT = 100
"""Records of each network."""


def from_torch(name: str) -> tuple[Model, Array]:
    """A network, and records whose amplitude lies between 0.02 and 3."""
    model = luciole.load(data_path(f"found/composites/{name}.onnx"))
    model.graph.inputs[0].name = "x"
    shape = SHAPES[name]
    sizes = np.random.default_rng(1).uniform(0.02, 3, COUNT).astype(np.float32)
    return model, random(1, COUNT, *shape) * sizes.reshape(-1, *[1] * len(shape))


@pytest.mark.parametrize("name", SHAPES)
def test_norms_of_very_uneven_records(name: str) -> None:
    """The largest is 150 times as large as the smallest."""
    model, x = from_torch(name)
    sizes = np.abs(x).max(tuple(range(1, x.ndim)), keepdims=True)
    steps = np.random.default_rng(2).permutation(np.geomspace(0.02, 3, len(x), dtype=np.float32))
    x = x / sizes * steps.reshape(sizes.shape)
    work = luciole.quantize(model, {"x": x}, scheme="int8", proof=False).model
    assert decibels(answers(model, x), answers(work, x)) > 35


@pytest.mark.parametrize("name", SHAPES)
def test_norms_from_pytorch_run_on_every_record(name: str) -> None:
    model, x = from_torch(name)
    content = to_bytes(
        luciole.quantize(model, {"x": x}, scheme="int8", proof=False).model, "tflite"
    )
    wanted, ours = answers(model, x), answers(content, x)
    (theirs,) = litert_records(content, [x])
    assert min(decibels(wanted, ours), decibels(wanted, theirs)) > 25


def test_a_norm_of_one_operator_keeps_small_records() -> None:
    model, x = from_torch("instnorm")
    fused = luciole.optimize(model, target="circle")
    work = luciole.quantize(fused, {"x": x}, scheme="int8", proof=False).model
    assert any(isinstance(op, InstanceNorm) for op in work.graph.ops)
    assert decibels(answers(model, x), answers(work, x)) > 30


def test_records_of_one_size_keep_their_integers() -> None:
    """There is nothing to lose: the layer before computes with integers."""
    model, x = from_torch("instnorm")
    size = np.abs(x).max((1, 2, 3), keepdims=True)
    work = luciole.quantize(model, {"x": x / size}, scheme="int8", proof=False).model
    layers = [op for op in work.graph.ops if isinstance(op, Conv2D)]
    assert [op.input.dtype for op in layers] == [TensorType.INT8, TensorType.INT8]


@pytest.mark.parametrize("spread", [1, 150])
@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_a_norm_of_integers_keeps_as_much_as_one_of_floats(scheme: str, spread: float) -> None:
    """Records that were not seen, against the graph whose root and quotient stay float: ranges of
    moments and roots leave room for these, and no tensor inside is rounded to 8 bits.
    """
    model = network(normalized)
    sizes = np.geomspace(3 / spread, 3, 200, dtype=np.float32)[:, None]
    x, unseen = random(5, 200, 16) * sizes, random(99, 200, 16) * sizes
    spelled, work = (
        quantize_uniform(one, {"x": x}, UniformOptions(scheme=scheme)).model
        for one in (model, canonical(model))
    )
    assert kinds_on_floats(spelled) >= {"MEAN", "SQRT", "DIV"}
    assert not kinds_on_floats(work)
    expected = answers(model, unseen)
    least = decibels(expected, answers(spelled, unseen))
    content = to_bytes(work, "tflite")
    (theirs,) = litert_records(content, [unseen])
    for made in (answers(content, unseen), theirs):
        assert decibels(expected, made) > least - 0.2


def kinds_on_floats(model: Model) -> set[str]:
    ops = [op for op in model.graph.ops if not isinstance(op, Quantize | Dequantize)]
    return {op.kind for op in ops if op.output.dtype == TensorType.FLOAT32}


def test_what_follows_a_norm_of_16_bits_reads_one_rounding() -> None:
    """Scales and shifts by constants belong to it; all that read 16 bits share one QUANTIZE."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    scaled = b.add(Mul(normalized(b, layer(b, x)), b.constant(random(7, 16))))
    b.graph.outputs = [layer(b, b.add(Add(scaled, b.constant(random(8, 16)))))]
    data = {"x": random(5, 200, 16)}
    work = luciole.quantize(b.model, data, scheme="int8", proof=False).model
    kinds = [op.kind for op in work.graph.ops if op.output.dtype == TensorType.INT16]
    norm = ["MEAN", "SUB", "MUL", "MEAN", "ADD", "RSQRT", "MUL"]
    assert kinds == ["QUANTIZE", *norm, "MUL", "ADD"]
    assert decibels(answers(b.model, data["x"]), answers(work, data["x"])) > 35


@pytest.mark.parametrize(("scheme", "least"), [("int8", 34), ("int16x8", 54)])
def test_a_layer_normalization_of_uneven_records(scheme: str, least: float) -> None:
    model = network(normalized)
    sizes = np.geomspace(0.02, 3, 200, dtype=np.float32)[:, None]
    x = random(5, 200, 16) * sizes
    work = luciole.quantize(model, {"x": x}, scheme=scheme, proof=False).model
    assert decibels(answers(model, x), answers(work, x)) > least


def test_parts_of_what_a_normalization_gives_have_a_range_of_their_own() -> None:
    """It has 16 bits, its parts have 8: their range is not that of a tensor of their type."""
    b = Builder()
    x = b.add(FullyConnected(b.graph.add_input("x", (1, 16)), b.weights(16, 16)))
    axes = [b.constant(np.array([1], np.int32)) for _ in range(2)]
    moved = b.add(Sub(x, b.add(Mean(x, axes[0], keep_dims=True))))
    variance = b.add(Mean(b.add(Mul(moved, moved)), axes[1], keep_dims=True))
    root = b.add(Rsqrt(b.add(Add(variance, b.constant(np.array(1e-3, np.float32))))))
    scaled = b.add(Mul(b.add(Mul(moved, root)), b.constant(np.full(16, 9, np.float32))))
    split = Split(b.constant(np.array([1], np.int32)), scaled)
    split.num_splits = 2
    first, second = b.graph.append(split, "first", "second").results
    b.graph.outputs = [b.add(FullyConnected(b.add(Mul(first, second)), b.weights(4, 8)))]
    records = random(11, 64, 16)
    result = luciole.quantize(b.model, records, scheme="int8", proof=False)
    assert any(v.dtype == TensorType.INT16 for v in result.model.graph.values)
    (real,), (got,) = (luciole.run(m, records).values() for m in (b.model, result.model))
    assert 10 * np.log10(np.mean(real**2) / np.mean((real - got) ** 2)) > 25


@pytest.mark.parametrize(
    "which", [{"operator": "SUB"}, {"name": "1/LayerNormalization_output_0/sub"}]
)
def test_a_rule_that_asks_for_bytes_inside_of_a_normalization_gets_them(
    which: dict[str, str],
) -> None:
    model, x = from_torch("layernorm")
    x = random(3, 60, *SHAPES["layernorm"])
    config = {"layers": [{**which, "scheme": "int:w8a8"}]}
    for rules, inside in ((None, TensorType.INT16), (config, TensorType.INT8)):
        work = luciole.quantize(model, {"x": x}, scheme="int8", config=rules, proof=False).model
        ops = [op for op in work.graph.ops if not isinstance(op, Quantize | Dequantize)]
        assert {op.output.dtype for op in ops if isinstance(op, Sub | Rsqrt)} == {inside}
        assert decibels(answers(model, x), answers(work, x)) > 30
