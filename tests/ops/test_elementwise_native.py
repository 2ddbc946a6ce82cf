"""Compiled element-wise kernels against double precision, the references and LiteRT."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Op
from luciole.ir.ops import activations, elementwise_binary, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.kernels.elements import binary, unary
from luciole.kernels.formulas.elementwise import Applied, define_unary
from luciole.kernels.gelu import erfc
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import check_compiled, declines, run_compiled, run_steps
from tests.networks import random
from tests.support import litert, one_op, run_litert

pytestmark = pytest.mark.filterwarnings("error")

EVERY_FLOAT = np.arange(0, 2**32, 36007, dtype=np.int64).astype(np.uint32).view(np.float32)
"""Numbers of every size and sign, NaN and infinities."""

EXTREMES = np.array(
    [
        0,
        -0.0,
        1e-45,
        -1e-45,
        1e-38,
        88.8,
        -88.8,
        104,
        -104,
        3e38,
        -3e38,
        np.inf,
        -np.inf,
        np.nan,
        1,
    ],
    np.float32,
)
ZEROS = np.array([0, -0.0], np.float32)
EXACT: tuple[tuple[type[Op], dict[str, Any]], ...] = (
    (activations.Relu, {}),
    (activations.Relu6, {}),
    (activations.ReluN1To1, {}),
    (elementwise_unary.Abs, {}),
    (elementwise_unary.Neg, {}),
    (elementwise_unary.Sqrt, {}),
    (elementwise_unary.Rsqrt, {}),
    (elementwise_unary.Square, {}),
    (LeakyRelu, {"alpha": 0.1}),
    (LeakyRelu, {"alpha": -2.0}),
)
ARITHMETIC = (
    elementwise_binary.Add,
    elementwise_binary.Sub,
    elementwise_binary.Mul,
    elementwise_binary.Div,
)
BINARY = (
    *ARITHMETIC,
    elementwise_binary.Maximum,
    elementwise_binary.Minimum,
    elementwise_binary.SquaredDifference,
)
INTEGERS: tuple[tuple[type[Op], type[np.generic]], ...] = (
    (elementwise_binary.Add, np.int32),
    (elementwise_binary.Sub, np.int64),
    (elementwise_binary.Mul, np.int32),
    (elementwise_binary.Mul, np.int64),
    (elementwise_binary.Maximum, np.int64),
    (elementwise_binary.Minimum, np.int32),
)
"""Each is compiled by the same code for either type."""

FUSED = (
    *((elementwise_binary.Add, name) for name in ("RELU", "RELU6", "RELU_N1_TO_1", "TANH")),
    (elementwise_binary.Sub, "RELU6"),
    (elementwise_binary.Mul, "RELU_N1_TO_1"),
    (elementwise_binary.Div, "TANH"),
)
SHAPES = (
    ((), ()),
    ((3,), ()),
    ((100,), (1,)),
    ((1,), (100,)),
    ((33, 17), (17,)),
    ((33, 1), (33, 17)),
    ((2, 1, 5), (4, 1)),
    ((5, 33, 17), (33, 1)),
    ((7, 1, 3, 1, 2), (1, 2, 1, 3, 1)),
    ((0, 3), (1, 3)),
    ((1, 3), (0, 3)),
    ((3, 700, 65), (700, 65)),
)


ALIKE = ((5, 33, 17), (33, 17)), ((0, 3), (1, 3)), ((3, 700, 65), (700, 65))
"""Of which both operands go on within a line. Kernels are compiled for that: functions that differ
elsewhere alone need no others.
"""


def every_pair(x: Array) -> list[Array]:
    """All pairs of numbers, side by side."""
    return [x.repeat(len(x)), np.tile(x, len(x))]


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 5, shape).astype(np.float32)


def _logistic(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def _hard_swish(x: Array) -> Array:
    return np.asarray(x * np.clip(x + 3, 0, 6) / 6)


APPROXIMATIONS: tuple[tuple[type[Op], Callable[[Array], Array], float], ...] = (
    (elementwise_unary.Exp, np.exp, 1.25),
    (elementwise_unary.Log, np.log, 1),
    (activations.Tanh, np.tanh, 4.5),
    (activations.Logistic, _logistic, 2.5),
    (activations.Elu, _elu, 2),
    (activations.HardSwish, _hard_swish, 2.5),
)
"""With the largest error in units of the last place."""


@pytest.mark.parametrize(("cls", "function", "most"), APPROXIMATIONS)
def test_approximations_are_within_a_few_units_of_the_last_place(
    cls: type[Op], function: Callable[[Array], Array], most: float
) -> None:
    x = EVERY_FLOAT[~(np.abs(EVERY_FLOAT) > 5e37)] if cls is activations.HardSwish else EVERY_FLOAT
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    result = run_compiled(cls, [x])[0]
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    np.testing.assert_array_equal(result[np.isinf(rounded)], rounded[np.isinf(rounded)])
    finite = np.isfinite(rounded)
    unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    assert np.max(np.abs(result[finite] - exact[finite]) / unit) <= most


@pytest.mark.parametrize("cls", [a[0] for a in APPROXIMATIONS])
@pytest.mark.parametrize("shape", [(), (1,), (5, 3), (16,), (33,), (2, 0), (3, 40_000)])
def test_approximations_of_any_shape_are_those_of_the_reference(
    cls: type[Op], shape: tuple[int, ...]
) -> None:
    with np.errstate(all="ignore"):
        check_compiled(cls, [floats(*shape)], rtol=6e-7)
        check_compiled(cls, [EXTREMES], rtol=6e-7, atol=1.5e-45)


@pytest.mark.parametrize(("cls", "attributes"), EXACT)
def test_simple_functions_are_exactly_those_of_the_reference(
    cls: type[Op], attributes: dict[str, Any]
) -> None:
    for x in (EVERY_FLOAT, EXTREMES, floats(7), floats(16), np.float32(-2.5)):
        check_compiled(cls, [np.asarray(x)], **attributes)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_is_right_in_absolute_terms(approximate: bool) -> None:
    x = np.linspace(-12, 12, 40_001, dtype=np.float32)
    wide = x.astype(np.float64)
    exact = wide * erfc(wide * -math.sqrt(0.5)) / 2
    if approximate:
        exact = wide * _logistic(2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
    result = run_compiled(Gelu, [x], approximate=approximate)[0]
    assert np.max(np.abs(result - exact) / np.maximum(np.abs(wide), 1)) < 3e-7
    check_compiled(Gelu, [EXTREMES], rtol=1e-6, atol=1e-7, approximate=approximate)


@pytest.mark.parametrize(
    ("cls", "x", "y"),
    [
        *((elementwise_binary.Sub, *shapes) for shapes in SHAPES),
        *((cls, *shapes) for cls in BINARY for shapes in ALIKE),
    ],
)
def test_pairs_of_any_shapes_are_exactly_those_of_the_reference(
    cls: type[Op], x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    check_compiled(cls, [floats(*x), floats(*y) + 1])


@pytest.mark.parametrize("cls", BINARY)
def test_pairs_of_extremes_are_exactly_those_of_the_reference(cls: type[Op]) -> None:
    check_compiled(cls, every_pair(EXTREMES))
    zeros = run_compiled(cls, every_pair(ZEROS))[0]
    wanted = {
        elementwise_binary.Maximum: [0, 1, 0, 1],
        elementwise_binary.Minimum: [0, 1, 0, 1],
    }
    if cls in wanted:
        np.testing.assert_array_equal(np.signbit(zeros), wanted[cls])


@pytest.mark.parametrize(("cls", "dtype"), INTEGERS)
def test_plain_integers_wrap_as_in_litert(cls: type[Op], dtype: type[np.generic]) -> None:
    numbers = np.array([0, 1, -1, 7, -3, 2**31 - 1, -(2**31), 65_537], dtype)
    numbers[-2:] *= 1 if dtype is np.int32 else 2**30 + 1
    stretched = [[numbers, numbers[3]], [numbers[2:3], numbers]]
    is_add = cls is elementwise_binary.Add  # others differ elsewhere
    for pair in [every_pair(numbers), *(stretched if is_add else ())]:
        arrays = [np.asarray(array) for array in pair]
        wanted = run_litert(cls, arrays)[0]
        np.testing.assert_array_equal(run_compiled(cls, arrays)[0], wanted, strict=True)


def test_an_activation_of_integers_is_left_to_the_reference() -> None:
    pair = [np.arange(3, dtype=np.int32)] * 2
    assert declines(elementwise_binary.Add, pair, activation=ActivationFunctionType.RELU)


@pytest.mark.parametrize(("cls", "activation"), FUSED)
def test_fused_activations_are_those_of_the_reference(cls: type[Op], activation: str) -> None:
    fused = ActivationFunctionType[activation]
    tolerance = 5e-7 if activation == "TANH" else 0
    check_compiled(cls, [floats(9, 35), floats(35)], rtol=tolerance, activation=fused)
    check_compiled(cls, every_pair(EXTREMES), rtol=tolerance, activation=fused)


def test_a_constant_operand_may_lie_anywhere() -> None:
    check_compiled(elementwise_binary.Add, [floats(4, 21), floats(21)], (1,))


def test_add_leaves_an_unknown_activation_to_the_reference() -> None:
    pair = [floats(3), floats(3)]
    assert declines(elementwise_binary.Add, pair, activation=ActivationFunctionType.SIGN_BIT)


@pytest.mark.parametrize(("x", "alpha"), [((2, 3, 4, 5), (1, 1, 5)), ((3, 33), (33,)), ((7,), ())])
def test_prelu_is_exactly_that_of_the_reference(x: tuple[int, ...], alpha: tuple[int, ...]) -> None:
    check_compiled(PRelu, [floats(*x), floats(*alpha)])
    check_compiled(PRelu, [EXTREMES, np.array([-0.5], np.float32)])


COMPARED: tuple[tuple[type[Op], float], ...] = (
    (activations.Tanh, 1e-6),
    (activations.Relu6, 0),
    (activations.Elu, 2e-6),
    (elementwise_unary.Exp, 1e-6),
    (elementwise_unary.Sqrt, 2e-7),
)


@pytest.mark.parametrize(("cls", "tolerance"), COMPARED)
def test_functions_are_those_that_users_of_litert_get(cls: type[Op], tolerance: float) -> None:
    x = np.abs(floats(3, 41)) - (0 if cls is elementwise_unary.Sqrt else 3)
    theirs = litert(to_bytes(one_op(cls, [x]), "tflite"), [x], "AUTO")[0]
    np.testing.assert_allclose(run_compiled(cls, [x])[0], theirs, rtol=tolerance, atol=1e-7)


@pytest.mark.parametrize("cls", BINARY)
def test_pairs_are_those_that_users_of_litert_get(cls: type[Op]) -> None:
    pair = [floats(2, 9, 21), floats(9, 21) + 30]
    theirs = litert(to_bytes(one_op(cls, pair), "tflite"), pair, "AUTO")[0]
    np.testing.assert_allclose(run_compiled(cls, pair)[0], theirs, rtol=2e-7)


def test_a_formula_of_an_operator_with_attributes_is_refused() -> None:
    with pytest.raises(TypeError, match="Gelu has approximate: a formula knows nothing of"):
        unary.define(Gelu, lambda x: x)
    with pytest.raises(TypeError, match="Add has activation, pot_scale_int16: a f"):
        binary.define(elementwise_binary.Add, lambda x, y: x + y)


def test_a_second_formula_of_an_operator_is_refused() -> None:
    with pytest.raises(TypeError, match="SquaredDifference names two functions"):
        binary.define(elementwise_binary.SquaredDifference, lambda x, y: x - y)


@pytest.mark.parametrize("count", [1, 16, 37])
def test_a_formula_has_numbers_on_either_side(count: int) -> None:
    x, y = random(1, count), np.empty(count, np.float32)
    number = define_unary(
        f"of a test with {count}", lambda x: (2.0 - 1.0 / (1.0 + abs(x))) * (0.5 * x)
    )
    step = unary.step(Applied(number), x, y)
    run_steps(step, [step.record])
    np.testing.assert_allclose(y, (2 - 1 / (1 + np.abs(x))) * (0.5 * x), rtol=1e-6)
