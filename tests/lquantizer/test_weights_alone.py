"""Weights of 4 bits beside float tensors: with records they are learned layer by layer."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter.records import first_output
from luciole.ir import Model, TensorType
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.quantize import Dequantize
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.search.space import recipe
from tests.lquantizer.networks import images
from tests.lquantizer.runs import records
from tests.networks import network, random


def error(model: Model, whole: Model) -> float:
    """Mean squared error on records that nothing was learned from."""
    data = records(whole, 40, seed=9)
    return float(np.square(first_output(model, data) - first_output(whole, data)).mean())


@pytest.mark.parametrize("scheme", ["dynamic4", "weights4"])
def test_records_bring_outputs_closer(scheme: str) -> None:
    whole = images()
    alone = luciole.quantize(whole, None, scheme=scheme, proof=False)
    learned = luciole.quantize(whole, records(whole), scheme=scheme, proof=False)
    assert error(learned.model, whole) < 0.6 * error(alone.model, whole)
    assert all(layer.mse is None for layer in alone.report.layers)
    known = [layer.weight_bits for layer in learned.report.layers if layer.mse is not None]
    assert known
    assert set(known) == {4}


def test_layers_read_what_was_learned() -> None:
    model = luciole.quantize(images(), records(images()), scheme="dynamic4", proof=False).model
    types = [value.dtype for op in model.graph.ops if (value := weight_constant(op))]
    assert TensorType.INT4 in types
    readers = [
        u.op for op in model.graph.ops if isinstance(op, Dequantize) for u in op.output.users
    ]
    assert all(isinstance(op, DepthwiseConv2D) for op in readers), (
        "LiteRT runs them in no other way"
    )


def test_to_the_nearest_needs_no_records() -> None:
    options = UniformOptions("dynamic4", rounding="nearest", rescale="none")
    both = (None, records(images()))
    files = [to_bytes(luciole.quantize(images(), data, options).model) for data in both]
    assert files[0] == files[1]


@pytest.mark.parametrize("scheme", ["dynamic", "dynamic4", "weights", "float16"])
def test_weights_that_layers_share_stay_shared(scheme: str) -> None:
    model = network((20, 20, 20, 4))
    first, second, _ = (op for op in model.graph.ops if op.kind == "FULLY_CONNECTED")
    second.set_operand(1, first.operands[1])
    alone = len(
        to_bytes(luciole.quantize(network((20, 20, 20, 4)), None, scheme=scheme, proof=False).model)
    )
    found = luciole.quantize(model, None, scheme=scheme, proof=False).model
    assert len(to_bytes(found)) < alone - 100
    data = random(2, 30, 20)
    one, other = (first_output(m, {m.graph.inputs[0].name: data}) for m in (found, model))
    np.testing.assert_allclose(one, other, atol=0.4)
    again = to_bytes(luciole.quantize(model, data, scheme=scheme, proof=False).model)
    assert again == to_bytes(found) or scheme == "dynamic4"
    assert len(again) < alone - 100


def test_records_must_be_numbers() -> None:
    data = records(images())
    next(iter(data.values()))[3] = np.nan
    with pytest.raises(QuantizeError, match="of record 3 is nan"):
        luciole.quantize(images(), data, scheme="dynamic4")


def test_beside_learned_levels_too() -> None:
    whole, data = network((40, 32, 16, 4)), random(1, 60, 40)
    chosen = {"fc1": "dynamic:int4", "fc2": "levels:w2a4", "fc3": "dynamic:int4"}
    layers = luciole.quantize(whole, data, config=recipe(chosen)).report.layers
    assert [layer.weight_bits for layer in layers] == [4, 2, 4]
    assert all(layer.mse is not None for layer in layers)
