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
from luciole.ir.ops.instance_norm import InstanceNorm
from tests.lquantizer.test_poles import answers, decibels, network, normalized
from tests.networks import random
from tests.support import data_path, litert

SHAPES = {"layernorm": (16,), "l2n": (16,), "instnorm": (3, 16, 16), "groupnorm": (3, 16, 16)}


def from_torch(name: str) -> tuple[Model, Array]:
    """A network, and records whose amplitude lies between 0.02 and 3."""
    model = luciole.load(data_path(f"found/composites/{name}.onnx"))
    model.graph.inputs[0].name = "x"
    shape = SHAPES[name]
    sizes = np.random.default_rng(1).uniform(0.02, 3, 200).astype(np.float32)
    return model, random(1, 200, *shape) * sizes.reshape(-1, *[1] * len(shape))


@pytest.mark.parametrize("name", SHAPES)
def test_norms_from_pytorch_run_on_every_record(name: str) -> None:
    model, x = from_torch(name)
    content = to_bytes(luciole.quantize(model, {"x": x}, scheme="int8").model, "tflite")
    wanted, ours = answers(model, x), answers(content, x)
    theirs = np.concatenate([litert(content, [row[None]])[0] for row in x])
    assert min(decibels(wanted, ours), decibels(wanted, theirs)) > 25


def test_a_norm_of_one_operator_keeps_small_records() -> None:
    model, x = from_torch("instnorm")
    fused = luciole.optimize(model, target="circle")
    work = luciole.quantize(fused, {"x": x}, scheme="int8").model
    assert any(isinstance(op, InstanceNorm) for op in work.graph.ops)
    assert decibels(answers(model, x), answers(work, x)) > 30


def test_records_of_one_size_keep_their_integers() -> None:
    """There is nothing to lose: the layer before computes with integers."""
    model, x = from_torch("instnorm")
    size = np.abs(x).max((1, 2, 3), keepdims=True)
    work = luciole.quantize(model, {"x": x / size}, scheme="int8").model
    layers = [op for op in work.graph.ops if isinstance(op, Conv2D)]
    assert [op.input.dtype for op in layers] == [TensorType.INT8, TensorType.INT8]


@pytest.mark.parametrize(("scheme", "least"), [("int8", 30), ("int16x8", 35)])
def test_a_layer_normalization_of_uneven_records(scheme: str, least: float) -> None:
    model = network(normalized)
    sizes = np.geomspace(0.02, 3, 200, dtype=np.float32)[:, None]
    x = random(5, 200, 16) * sizes
    work = luciole.quantize(model, {"x": x}, scheme=scheme).model
    assert decibels(answers(model, x), answers(work, x)) > least
