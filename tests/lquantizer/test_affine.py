"""Uniform formats: learned by ranges, written as operators that round, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from benchmarks.affine import min_max, nearest_levels, round_weights, rounded_input
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Model
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.rows import weight_rows
from luciole.lquantizer.network.bias import channel_means, correct_bias
from luciole.schema.enums import ActivationFunctionType
from tests.lquantizer.networks import Builder
from tests.networks import network, random

X = random(3, 50, 20)


def one_layer() -> tuple[Model, FullyConnected]:
    model = network((20, 4))
    (op,) = model.graph.ops
    assert isinstance(op, FullyConnected)
    return model, op


def test_affine_levels() -> None:
    weights = np.array([[-1.0, 0.1, 0.9, 2.0], [5.0, 5.0, 5.0, 5.0]], np.float32)
    assert nearest_levels(weights, 2).tolist() == [[-1, 0, 1, 2], [5, 5, 5, 5]]
    assert nearest_levels(weights, 1)[0].tolist() == [-1, -1, 2, 2]
    assert min_max(-1, 2, 2) == (1, 1)
    assert min_max(1, 3, 2) == (1, 0)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(0, 0, (1, 0)), (-3, -1, (1, 3)), (-0.4, 2.6, (1, 0)), (-0.6, 2.4, (1, 1))],
)
def test_ranges_are_widened_to_hold_0(low: float, high: float, found: tuple[float, int]) -> None:
    assert min_max(low, high, 2) == pytest.approx(found)


@pytest.mark.parametrize("bits", range(1, 9))
def test_min_max_reaches_both_ends_within_half_a_step(bits: int) -> None:
    scale, zero_point = min_max(-1.3, 2.9, bits)
    assert 0 <= zero_point < 2**bits
    assert -zero_point * scale == pytest.approx(-1.3, abs=scale / 2)
    assert (2**bits - 1 - zero_point) * scale == pytest.approx(2.9, abs=scale / 2)


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_means_are_numpys(batch: int) -> None:
    model, op = one_layer()
    y = X @ weight_rows(op).T + (0 if op.bias is None else op.bias.data)
    for value, array in ((op.input, X), (op.output, y)):
        means = channel_means(model, value, {"x": X}, batch)
        np.testing.assert_allclose(means, array.mean(0, dtype=np.float64), atol=1e-6)


def test_means_refuse_what_is_not_finite() -> None:
    model, op = one_layer()
    with pytest.raises(QuantizeError, match="becomes NaN or infinite on the calibration data"):
        channel_means(model, op.output, {"x": np.full_like(X, np.inf)}, 10)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_rounded_layers_compute_with_rounded_numbers(bits: int) -> None:
    model, op = one_layer()
    float_weights, bias = weight_rows(op), op.bias.data if op.bias is not None else 0
    scale, zero = min_max(-1.0, 1.5, bits)
    round_weights(model.graph, op, bits)
    op.set_operand(0, rounded_input(model.graph, op, -1.0, 1.5, bits))
    codes = np.clip(np.floor(np.abs(X / scale) + 0.5) * np.sign(X) + zero, 0, 2**bits - 1)
    wanted = ((codes - zero) * scale) @ nearest_levels(float_weights, bits).T + bias
    (found,) = Interpreter(from_bytes(to_bytes(model))).run(X).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_corrected_biases_keep_means() -> None:
    model, op = one_layer()
    wanted = np.arange(4.0)
    correct_bias(model, op, wanted, {"x": X}, 10)
    (y,) = Interpreter(model).run(X).values()
    np.testing.assert_allclose(y.mean(0, dtype=np.float64), wanted, atol=1e-5)


@pytest.mark.parametrize("scheme", ["int8", "uint8", "int16x8"])
def test_a_layer_behind_nothing_but_zeros_keeps_its_bias(scheme: str) -> None:
    """Its scale is the product of its input's and its weights', and the input's is anybody's."""
    b = Builder()
    x, below = b.graph.add_input("x", (1, 4)), b.constant(np.full(8, -99, "f"))
    dead = FullyConnected(x, b.weights(8, 4), below)
    dead.activation = ActivationFunctionType.RELU6
    bias = np.array([0.011, -0.02, 0.0321], np.float32)
    b.graph.outputs = [b.add(FullyConnected(b.add(dead), b.weights(3, 8), b.constant(bias)))]
    result = luciole.quantize(b.model, random(3, 32, 4), scheme=scheme, proof=False)
    (y,) = luciole.run(result.model, random(4, 1, 4)).values()
    np.testing.assert_allclose(y[0], bias, atol=3e-4)
