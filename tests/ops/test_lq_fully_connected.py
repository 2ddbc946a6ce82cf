"""LQ_FULLY_CONNECTED: the reference and the compiled kernel against the formula.

Counts are integers, so only the sums of their products differ: by at most 1e-6 of the largest
result for the reference (float64) and 1e-5 for the compiled kernel (float32).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lq_support import Layer, oracle, random_input, random_layer, with_offsets
from tests.support import one_op

ACTIVATIONS = [Act.NONE, Act.RELU, Act.RELU_N1_TO_1, Act.RELU6, Act.TANH]


def check(layer: Layer, x: Array, native: bool = True) -> None:
    """Reference and compiled kernel give what the formula gives."""
    wanted = oracle(layer, x)
    scale = max(float(np.abs(oracle(replace(layer, activation=Act.NONE), x)).max(initial=0)), 1e-30)
    results = [(layer.reference(x), 1e-6)] + ([(layer.native(x), 1e-5)] if native else [])
    for found, tolerance in results:
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale, strict=False)
        assert found.shape == wanted.shape


@pytest.mark.parametrize("n", [1, 7, 31, 32, 33, 64, 65, 200])
@pytest.mark.parametrize(("rows", "o"), [(1, 1), (1, 9), (5, 1), (37, 12)])
def test_any_size_gives_what_the_formula_gives(n: int, rows: int, o: int) -> None:
    check(random_layer(n, o, 3, 2), random_input((rows, n)))


@pytest.mark.parametrize(("kx", "kw"), list(product(range(1, 9), range(1, 5))))
def test_the_reference_takes_any_width(kx: int, kw: int) -> None:
    check(with_offsets(random_layer(45, 6, kx, kw)), random_input((8, 45)), native=False)


@pytest.mark.parametrize(
    ("kx", "kw"),
    [(1, 1), (2, 2), (3, 3), (7, 4), (8, 4)],
)
def test_any_width_gives_what_the_formula_gives(kx: int, kw: int) -> None:
    layer = random_layer(45, 18, kx, kw)
    check(layer, random_input((9, 45)))
    check(with_offsets(layer), random_input((9, 45)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_every_activation_after_bias_and_offsets(
    activation: Act, offsets: bool, bias: bool
) -> None:
    layer = random_layer(70, 33, 2, 2)
    if bias:
        layer.bias = np.linspace(-2, 2, 33, dtype=np.float32)
    if offsets:
        layer = replace(with_offsets(layer, bias), bias=layer.bias)
    x = random_input((9, 70))
    raw = oracle(layer, x)
    assert raw.min() < -1  # there is something to cut off on both sides
    assert raw.max() > 1
    cuts_as_another = activation == Act.RELU6  # but elsewhere, see RELU_N1_TO_1
    check(replace(layer, activation=activation), x, native=not cuts_as_another)


@pytest.mark.parametrize("shape", [(40,), (1, 40), (2, 3, 40), (2, 1, 3, 40), (0, 40)])
def test_leading_axes_are_kept(shape: tuple[int, ...]) -> None:
    layer = with_offsets(random_layer(40, 5, 2, 2))
    check(layer, random_input(shape))


def test_an_input_offset_alone_and_a_weights_offset_alone() -> None:
    layer = random_layer(50, 4, 2, 2)
    x = random_input((6, 50))
    check(replace(layer, input_offset=-1.25), x)
    check(replace(layer, weights_offsets=np.array([0.1, 0, -0.2, 0.3], np.float32)), x)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1e-45, -1e-40, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 0.5]
)
@pytest.mark.parametrize("kx", [1, 3])
def test_inputs_that_are_all_one_extreme(value: float, kx: int) -> None:
    check(with_offsets(random_layer(37, 5, kx, 2)), np.full((9, 37), value, np.float32))


def test_extremes_between_ordinary_inputs() -> None:
    x = random_input((4, 37))
    x[:, ::5] = np.nan
    x[:, 1::7] = np.inf
    x[:, 2::7] = -np.inf
    x[:, 3::7] = 1e-42
    check(random_layer(37, 5, 3, 2), x)


def one_weight(input_scales: list[float]) -> Layer:
    """A layer whose one weight of +1 (another plane is worth nothing) shows an input's level."""
    scales = np.array([[1, 0]], np.float32)
    return Layer(np.array(input_scales, np.float32), scales, np.ones((1, 2, 1), np.bool_))


def test_nan_is_the_lowest_level_and_the_infinities_are_the_ends() -> None:
    layer = one_weight([1.0, 0.5])
    x = np.array([[np.nan], [-np.inf], [np.inf]] * 2, np.float32)
    for y in (layer.reference(x), layer.native(x)):
        assert y.tolist() == [[-1.5], [-1.5], [1.5]] * 2


EDGES = np.array([-0.5, 0, 0.5], np.float32)


def test_inputs_exactly_on_thresholds_take_the_lower_level() -> None:
    """Levels -0.75 -0.25 0.25 0.75 with thresholds -0.5 0 0.5."""
    layer = one_weight([0.5, 0.25])
    above = np.nextafter(EDGES, np.float32(np.inf))
    x = np.concatenate([EDGES, above])[:, None]
    for y in (layer.reference(x), layer.native(x)):
        assert y[:, 0].tolist() == [-0.75, -0.25, 0.25, -0.25, 0.25, 0.75]


def test_inputs_on_the_thresholds_of_random_bases() -> None:
    for seed in range(20):
        layer = random_layer(64, 3, 4, 2, seed)
        a = layer.input_scales.astype(np.float64)
        signs = np.array([[1 if c >> i & 1 else -1 for i in range(4)] for c in range(16)])
        rising = np.sort(signs @ a)
        between = ((rising[1:] + rising[:-1]) / 2).astype(np.float32)
        check(layer, np.resize(between, (4, 64)))


@pytest.mark.parametrize("scales", [[0.0], [0.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.5, 0.0, 0.5]])
def test_bases_that_repeat_levels(scales: list[float]) -> None:
    layer = replace(random_layer(40, 4, 1, 2), input_scales=np.array(scales, np.float32))
    check(layer, random_input((9, 40)))


def test_padding_bits_do_not_count() -> None:
    """A row of 33 has 31 padding bits in its second word; they equal the input's, which are 0."""
    layer = replace(random_layer(33, 2, 1, 2), signs=np.ones((2, 2, 33), np.bool_))
    x = np.full((9, 33), 9.0, np.float32)
    wanted = np.abs(layer.input_scales[0]) * layer.weights_scales.sum(1) * 33
    np.testing.assert_allclose(layer.native(x), np.tile(wanted, (9, 1)), rtol=1e-6)


def test_padding_bits_that_a_file_left_set_do_not_count() -> None:
    layer = random_layer(40, 4, 2, 2)
    x = random_input((5, 40))
    model = layer.model(x)
    binary = model.graph.ops[0].operands[3]
    assert binary is not None
    assert binary.data is not None
    filled = binary.data.copy()
    filled[..., 1] |= -1 << 8
    binary.set_data(filled)
    y = Interpreter(model).run(x)["y0"]
    np.testing.assert_allclose(y, oracle(layer, x), rtol=0, atol=1e-5 * np.abs(y).max())


def test_scales_that_are_not_constant_are_read_at_every_run() -> None:
    layer = random_layer(40, 4, 2, 2)
    x = random_input((5, 40))
    interpreter = Interpreter(
        one_op(LQFullyConnected, layer.operands(x), (3,), **layer.attributes())
    )
    for factor in (1, 3):
        scaled = replace(layer, input_scales=layer.input_scales * factor)
        given = scaled.operands(x)
        y = interpreter.run({"x0": x, "x1": given[1], "x2": given[2]})["y0"]
        np.testing.assert_allclose(y, oracle(scaled, x), rtol=0, atol=1e-5 * np.abs(y).max())
