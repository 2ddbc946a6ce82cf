"""Learned levels against plain loops: levels, thresholds, nearest level, bit order."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from luciole.ir import Array, learned_levels

RNG = np.random.default_rng(20)
BASES = [
    [0.5],
    [-0.5],
    [1.0, 0.25],
    [-1.0, 0.25],
    [0.3, -0.7],
    [0.7, 0.35, 0.1],
    [-0.1, 0.35, -0.7],
    [0.9, 0.5, 0.3, 0.2],
    [1.0, 1.0],
    [1.0, 1.0, -1.0],
    [0.0, 1.0],
    [0.0, 0.0],
    RNG.standard_normal(8).tolist(),
]


def every_value(basis: list[float], offset: float = 0.0) -> list[float]:
    """The value behind each code number: bit i set means +a_i."""
    return [
        offset + sum(a if code >> i & 1 else -a for i, a in enumerate(basis))
        for code in range(2 ** len(basis))
    ]


@pytest.mark.parametrize("bits", range(1, 9))
def test_sign_codes_lists_every_sign_vector_by_its_number(bits: int) -> None:
    signs = learned_levels.sign_codes(bits)
    assert signs.shape == (2**bits, bits)
    wanted = [s[::-1] for s in product((-1.0, 1.0), repeat=bits)]  # the first element turns fastest
    np.testing.assert_array_equal(signs, wanted)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("offset", [0.0, 2.5])
def test_levels_rise_and_know_their_codes(basis: list[float], offset: float) -> None:
    values = every_value(basis, offset)
    found, order = learned_levels.levels(np.array(basis), offset)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, sorted(values), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.array(values)[order], found, rtol=1e-12, atol=1e-12)
    assert sorted(order.tolist()) == list(range(2 ** len(basis)))


def test_levels_that_are_equal_keep_the_order_of_their_codes() -> None:
    found, order = learned_levels.levels(np.array([1.0, 1.0, 1.0]))
    assert found.tolist() == [-3, -1, -1, -1, 1, 1, 1, 3]
    assert order.tolist() == [0, 1, 2, 4, 3, 5, 6, 7]
    _, order = learned_levels.levels(
        np.ones(8)
    )  # 256 levels, too many for a sort that is stable by chance
    assert order.tolist() == sorted(range(256), key=int.bit_count)


def test_levels_of_many_bases_are_those_of_each() -> None:
    bases, offsets = RNG.standard_normal((5, 3)), RNG.standard_normal(5)
    found, order = learned_levels.levels(bases, offsets)
    for row in range(5):
        one, places = learned_levels.levels(bases[row], offsets[row])
        np.testing.assert_allclose(found[row], one, rtol=1e-12)
        np.testing.assert_array_equal(order[row], places)


def test_thresholds_are_the_middles_rounded_to_float32() -> None:
    between = learned_levels.thresholds(np.array([[-1.0, 0.1, 0.1, 5.0], [0.0, 1.0, 2.0, 4.0]]))
    wanted = np.array([[(-1.0 + 0.1) / 2, 0.1, 2.55], [0.5, 1.5, 3.0]]).astype(np.float32)
    np.testing.assert_array_equal(between, wanted, strict=True)


def test_encode_takes_the_lower_level_at_a_tie() -> None:
    between = np.array([-1.0, 0.0, 2.0], np.float32)
    x = np.array([-1.5, -1.0, np.nextafter(np.float32(-1), np.float32(0)), 0.0, 1e-30, 2.0, 2.5])
    assert learned_levels.encode(x, between).tolist() == [0, 0, 1, 1, 2, 2, 3]


def test_encode_takes_nan_to_the_lowest_and_infinities_to_the_ends() -> None:
    between = np.array([-1.0, 0.0, 2.0], np.float32)
    assert learned_levels.encode(np.array([np.nan, -np.inf, np.inf]), between).tolist() == [0, 0, 3]


def test_encode_passes_over_a_level_that_occurs_twice() -> None:
    between = learned_levels.thresholds(np.array([-1.0, 0.0, 0.0, 1.0]))
    x = np.array([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75])
    assert learned_levels.encode(x, between).tolist() == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("basis", BASES)
def test_encode_takes_the_nearest_level(basis: list[float]) -> None:
    found, _ = learned_levels.levels(np.array(basis))
    x = RNG.uniform(-3, 3, 500).astype(np.float32)
    chosen = found[learned_levels.encode(x, learned_levels.thresholds(found))]
    nearest = np.abs(x[:, None] - found).min(1)
    np.testing.assert_allclose(np.abs(x - chosen), nearest, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bits", range(1, 9))
def test_encode_rows_does_what_a_loop_does(bits: int) -> None:
    between = np.sort(RNG.integers(-9, 9, (7, 2**bits - 1)).astype(np.float32), axis=1)
    x = RNG.integers(-10, 10, (7, 40)).astype(np.float32)  # many ties, many equal thresholds
    x[:, :3] = np.nan, np.inf, -np.inf
    wanted = [
        [sum(bool(v > t) for t in row) for v in values]
        for row, values in zip(between, x, strict=True)
    ]
    np.testing.assert_array_equal(learned_levels.encode_rows(x, between), wanted)
    for row in range(7):
        np.testing.assert_array_equal(learned_levels.encode(x[row], between[row]), wanted[row])


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 100])
def test_pack_sets_bit_k_mod_32_of_word_k_div_32(n: int) -> None:
    bits = RNG.integers(0, 2, (2, 3, n)).astype(np.bool_)
    words = learned_levels.pack(bits)
    assert words.shape == (2, 3, (n + 31) // 32)
    assert words.dtype == np.int32
    wanted = np.zeros(words.shape, np.uint32)
    for *row, k in np.argwhere(bits).tolist():
        wanted[(*row, k // 32)] |= np.uint32(1 << k % 32)
    np.testing.assert_array_equal(words.view(np.uint32), wanted)  # also: padding is 0
    np.testing.assert_array_equal(learned_levels.unpack(words, n), bits, strict=True)


def test_pack_puts_the_last_bit_of_a_word_into_its_sign() -> None:
    bits = np.zeros(33, np.bool_)
    bits[[0, 31, 32]] = True
    assert learned_levels.pack(bits).tolist() == [-(2**31) + 1, 1]


def test_pack_of_no_bits_is_no_words() -> None:
    assert learned_levels.pack(np.zeros((4, 0), np.bool_)).shape == (4, 0)


def test_planes_separate_the_bits_of_a_code() -> None:
    assert learned_levels.planes(np.array([0b001, 0b010, 0b100, 0b111]), 3).tolist() == [
        [0b1001],
        [0b1010],
        [0b1100],
    ]


@pytest.mark.parametrize("basis", BASES)
def test_decode_gives_the_value_behind_each_code(basis: list[float]) -> None:
    numbers = RNG.integers(0, 2 ** len(basis), (3, 45))
    offset = np.array([0.0, -1.5, 4.0])
    bases = np.tile(np.array(basis), (3, 1))
    found = learned_levels.decode(learned_levels.planes(numbers, len(basis)), bases, 45, offset)
    wanted: Array = np.array([every_value(basis, o) for o in offset])
    np.testing.assert_allclose(
        found, np.take_along_axis(wanted, numbers, 1), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("basis", BASES)
def test_decode_after_encode_is_the_nearest_level(basis: list[float]) -> None:
    values, order = learned_levels.levels(np.array(basis))
    x = RNG.uniform(-3, 3, 70).astype(np.float32)
    index = learned_levels.encode(x, learned_levels.thresholds(values))
    words = learned_levels.planes(order[index], len(basis))
    found = learned_levels.decode(words, np.array(basis), 70)
    np.testing.assert_allclose(found, values[index], rtol=1e-12, atol=1e-12)
