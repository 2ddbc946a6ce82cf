"""Binary element-wise operators: numbers against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, ShapeError, UnsupportedError
from luciole.ir.ops import elementwise_binary as ops
from luciole.schema.enums import ActivationFunctionType, TensorType
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

ALL = (ops.Add, ops.Sub, ops.Mul, ops.Div, ops.Maximum, ops.Minimum)
ARITHMETIC = (ops.Add, ops.Sub, ops.Mul, ops.Div)
SHAPES = (
    ((), ()),
    ((3,), ()),
    ((2, 1, 5), (4, 1)),
    ((7, 1, 3, 1, 2), (1, 2, 1, 3, 1)),
    ((0, 3), (1, 3)),
)
FLOATS = np.array(
    [0, -0.0, 1, -1, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan, 0.1], np.float32
)
INTEGERS = (0, 1, -1, 7, -7, 3, -3, 2**31 - 1, -(2**31) + 1, -(2**31))


def floats(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).normal(0, 5, shape).astype(np.float32)


def as_in_litert(x: Array) -> Array:
    """LiteRT's reference kernels clamp to the finite numbers even without an activation."""
    return np.clip(x, np.finfo(np.float32).min, np.finfo(np.float32).max)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(("x", "y"), SHAPES)
def test_floats_of_any_shapes_are_those_of_litert(
    cls: type[ops.Binary], x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    pair = [floats(x, 1), floats(y, 2)]
    np.testing.assert_array_equal(run_reference(cls, pair)[0], run_litert(cls, pair)[0])


@pytest.mark.parametrize("cls", ALL)
def test_extreme_floats_are_those_of_litert(cls: type[ops.Binary]) -> None:
    pair = [FLOATS.reshape(-1, 1), FLOATS]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    if cls in ARITHMETIC:
        ours = as_in_litert(ours)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(np.signbit(ours)[ours == 0], np.signbit(theirs)[ours == 0])


def test_infinity_stays_infinite() -> None:
    pair = [np.array([1, -1, np.inf], np.float32), np.array([0, 0, 2], np.float32)]
    np.testing.assert_array_equal(
        run_reference(ops.Div, pair)[0], np.array([np.inf, -np.inf, np.inf], np.float32)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("cls", ALL)
def test_integers_are_those_of_litert(cls: type[ops.Binary], dtype: DTypeLike) -> None:
    if cls is ops.Div and dtype is np.int64:
        pytest.skip("LiteRT has no 64-bit DIV")
    x, y = np.array(INTEGERS, dtype).reshape(-1, 1), np.array(INTEGERS, dtype)
    if cls is ops.Div:
        x, y = x[:-1], y[1:-1]
    np.testing.assert_array_equal(run_reference(cls, [x, y])[0], run_litert(cls, [x, y])[0])


def test_64_bit_division_truncates_like_c() -> None:
    numbers = [n for n in (*INTEGERS, 2**62 + 1, -(2**62) - 1) if n]
    quotients = [[abs(a) // abs(b) * (1 if a * b > 0 else -1) for b in numbers] for a in numbers]
    array = np.array(numbers, np.int64)
    result = run_reference(ops.Div, [array.reshape(-1, 1), array])[0]
    np.testing.assert_array_equal(result, np.array(quotients, np.int64))


def test_the_lowest_integer_divided_by_minus_one_wraps() -> None:
    lowest = np.array([-(2**31)], np.int32)
    np.testing.assert_array_equal(
        run_reference(ops.Div, [lowest, np.array([-1], np.int32)])[0], lowest
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integer_division_refuses_zero(dtype: DTypeLike) -> None:
    pair = [np.ones(3, dtype), np.array([1, 0, 0], dtype)]
    with pytest.raises(
        LucioleError, match=r"Div 'y0': 2 of 3 divisors are 0, integers need others"
    ):
        run_reference(ops.Div, pair)


def test_litert_refuses_integer_division_by_zero_too() -> None:
    with pytest.raises(RuntimeError, match="DIV"):
        run_litert(ops.Div, [np.array([1], np.int32), np.array([0], np.int32)])


@pytest.mark.parametrize("cls", ARITHMETIC)
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
def test_fused_activations_are_those_of_litert(cls: type[ops.Binary], activation: str) -> None:
    fused = ActivationFunctionType[activation]
    for dtype in (np.float32, np.int32):
        pair = [floats((4, 5), 3).astype(dtype), np.full((5,), 2, dtype)]
        ours = run_reference(cls, pair, activation=fused)[0]
        np.testing.assert_array_equal(ours, run_litert(cls, pair, activation=fused)[0])


def test_add_refuses_an_activation_without_meaning() -> None:
    pair = [np.ones(2, np.float32)] * 2
    with pytest.raises(UnsupportedError, match="SIGN_BIT is not supported for float32"):
        run_reference(ops.Add, pair, activation=ActivationFunctionType.SIGN_BIT)


def test_unknown_extents_stretch() -> None:
    graph = Graph()
    op = ops.Mul(graph.add_input("x", (None, 1, None)), graph.add_input("y", (5, 1)))
    assert op.result_shapes() == ((None, 5, None),)


def test_shapes_that_do_not_stretch_refuses_with_both() -> None:
    graph = Graph()
    op = ops.Sub(graph.add_input("x", (2, 3)), graph.add_input("y", (2,)))
    with pytest.raises(ShapeError, match=r"shapes \[2,3\] and \[2\] do not broadcast"):
        op.result_shapes()


def test_two_types_refuses_in_verify_and_when_run() -> None:
    pair = [np.ones(2, np.float32), np.ones(2, np.int32)]
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32 x INT32"):
        run_reference(ops.Maximum, pair)
    graph = Graph()
    op = ops.Add(graph.add_input("x", (2,)), graph.add_input("y", (2,), TensorType.INT32))
    assert list(op.verify()) == ["x is FLOAT32 and y is INT32; both must have one type"]


# ------------------------------------------------------------------- those without an activation
OTHERS = (ops.Pow, ops.FloorDiv, ops.FloorMod, ops.SquaredDifference)
SMALL = [np.int8, np.int16, np.int32]
BITS = [np.uint8, np.uint16, np.uint32, *SMALL]


@pytest.mark.parametrize("cls", OTHERS)
@pytest.mark.parametrize(("x", "y"), SHAPES)
def test_other_floats_of_any_shapes_are_those_of_litert(
    cls: type[ops.Binary], x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    pair = [floats(x, 1), floats(y, 2)]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, strict=True)


@pytest.mark.parametrize("cls", OTHERS)
def test_other_extreme_floats_are_those_of_litert(cls: type[ops.Binary]) -> None:
    x, y = FLOATS.reshape(-1, 1), FLOATS
    if cls is ops.FloorDiv:  # LiteRT: "Division by 0"
        y = FLOATS[FLOATS != 0]
    ours, theirs = run_reference(cls, [x, y])[0], run_litert(cls, [x, y])[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_floats_rounded_after_division_by_zero_are_infinite_or_nan() -> None:
    pair = [np.array([1, -1, 0], np.float32), np.zeros(3, np.float32)]
    quotients = run_reference(ops.FloorDiv, pair)[0]
    np.testing.assert_array_equal(quotients, np.array([np.inf, -np.inf, np.nan], np.float32))


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("cls", [ops.FloorDiv, ops.FloorMod])
def test_integers_rounded_down_are_those_of_litert(cls: type[ops.Binary], dtype: DTypeLike) -> None:
    x = np.array([0, 1, -1, 7, -7, 8, -8, 127, -127], dtype).reshape(-1, 1)
    pair = [x, x[1:].reshape(-1)]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("cls", [ops.FloorDiv, ops.FloorMod])
def test_64_bit_integers_rounded_down_are_those_of_python(cls: type[ops.Binary]) -> None:
    numbers = [n for n in (*INTEGERS, 2**62 + 1, -(2**62) - 1) if n]
    array = np.array(numbers, np.int64)
    index = 0 if cls is ops.FloorDiv else 1
    wanted = np.array([[divmod(a, b)[index] for b in numbers] for a in numbers], np.int64)
    result = run_reference(cls, [array.reshape(-1, 1), array])[0]
    np.testing.assert_array_equal(result, wanted, strict=True)


@pytest.mark.parametrize("cls", [ops.FloorDiv, ops.FloorMod])
def test_rounded_division_refuses_zero(cls: type[ops.Binary]) -> None:
    with pytest.raises(LucioleError, match=r"1 of 2 divisors are 0, integers need others"):
        run_reference(cls, [np.ones(2, np.int32), np.array([0, 3], np.int32)])


def test_integer_powers_and_differences_are_those_of_litert() -> None:
    x, y = np.arange(-5, 6, dtype=np.int32).reshape(-1, 1), np.arange(7, dtype=np.int32)
    for cls in (ops.Pow, ops.SquaredDifference):
        ours, theirs = run_reference(cls, [x, y])[0], run_litert(cls, [x, y])[0]
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_integer_powers_that_are_too_large_are_those_of_litert() -> None:
    x = np.array([2, 2, -2, -2, -3, 46341, 10, 0, 1, -1, 7], np.int32)
    y = np.array([30, 31, 31, 32, 20, 2, 9, 0, 40, 41, 2000], np.int32)
    ours, theirs = run_reference(ops.Pow, [x, y])[0], run_litert(ops.Pow, [x, y])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("x", [(4,), (4, 1), (1, 1), (1,), ()])
@pytest.mark.parametrize("y", [(), (1,), (1, 1, 1)])
@pytest.mark.parametrize("exponent", [0, 1, 2, 31, 40])
def test_integer_powers_by_a_single_exponent_are_those_of_litert(
    x: tuple[int, ...], y: tuple[int, ...], exponent: int
) -> None:
    bases = np.array([46341, 65536, -3, -(2**31)], np.int32)[: int(np.prod(x))].reshape(x)
    pair: list[Array] = [bases, np.full(y, exponent, np.int32)]
    ours, theirs = run_reference(ops.Pow, pair)[0], run_litert(ops.Pow, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_products_of_32_bits_without_a_sign_are_those_of_litert() -> None:
    x = np.array([0, 1, 7, 2**16, 2**32 - 1], np.uint32)
    pair = [x.reshape(-1, 1), x]
    ours, theirs = run_reference(ops.Mul, pair)[0], run_litert(ops.Mul, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_complex_products_are_those_of_litert() -> None:
    parts = np.random.default_rng(3).normal(0, 5, (2, 20)).astype(np.float32)
    x = (parts[0] + 1j * parts[1]).astype(np.complex64)
    pair = [x.reshape(-1, 1), x]
    ours, theirs = run_reference(ops.Mul, pair)[0], run_litert(ops.Mul, pair)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, strict=True)


def test_integer_powers_refuses_negative_exponents() -> None:
    pair = [np.ones(3, np.int32), np.array([-1, 0, -2], np.int32)]
    with pytest.raises(LucioleError, match="2 of 3 exponents are negative"):
        run_reference(ops.Pow, pair)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_are_those_of_litert(dtype: DTypeLike) -> None:
    x, y = (np.ascontiguousarray(a).astype(dtype) for a in np.meshgrid(FLOATS, FLOATS))
    ours, theirs = run_reference(ops.Atan2, [x, y])[0], run_litert(ops.Atan2, [x, y])[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, strict=True)


def test_angles_stretch() -> None:  # LiteRT needs both shapes equal
    angles = run_reference(ops.Atan2, [np.array([[1.0], [-1.0]]), np.array([0.0, -1.0])])[0]
    wanted = np.pi * np.array([[0.5, 0.75], [-0.5, -0.75]])
    np.testing.assert_allclose(angles, wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("cls", [ops.BitwiseXor, ops.RightShift])
def test_bits_are_those_of_litert(cls: type[ops.Binary], dtype: DTypeLike) -> None:
    numbers = np.array([0, 1, 2, 3, 7, 8, 31, 32, 100, -1, -3, -100, -128]).astype(dtype)
    pair = [numbers.reshape(-1, 1), numbers]
    ours, theirs = run_reference(cls, pair)[0], run_litert(cls, pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_64_bits_are_those_of_python() -> None:
    numbers = [0, 1, 63, 64, -1, 2**62, -(2**63)]
    array = np.array(numbers, np.int64)
    pair: list[Array] = [array.reshape(-1, 1), array]
    differing = np.array([[a ^ b for b in numbers] for a in numbers], np.int64)
    shifted = np.array([[a >> min(max(b, 0), 63) for b in numbers] for a in numbers], np.int64)
    np.testing.assert_array_equal(run_reference(ops.BitwiseXor, pair)[0], differing)
    np.testing.assert_array_equal(run_reference(ops.RightShift, pair)[0], shifted)


def test_bits_refuses_floats() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT32; there is INT16"):
        run_reference(ops.BitwiseXor, [np.ones(2, np.float32)] * 2)
