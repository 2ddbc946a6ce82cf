"""Number formats: every kind has the same calls, and each code stands for its nearest number."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, TensorType, learned_levels
from luciole.ir.number_format import Affine, Float, LearnedLevels, NumberFormat

RNG = np.random.default_rng(4)
BASES = np.abs(RNG.normal(size=(3, 2)))
OFFSETS = RNG.normal(size=3)

FORMATS: dict[str, NumberFormat] = {
    "half": Float(TensorType.FLOAT16),
    "int8": Affine.single(0.05, 3, TensorType.INT8),
    "int4": Affine.channels(np.array([0.1, 0.5, 1.0]), np.zeros(3), 0, TensorType.INT4),
    "levels": LearnedLevels(np.array([1.0, 0.5, 0.2]), np.array(0.3)),
    "rows of levels": LearnedLevels(BASES, OFFSETS),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(3, 40), (3, 2, 2, 5)])
def test_numbers_of_a_format_are_their_own_nearest(name: str, shape: tuple[int, ...]) -> None:
    found = FORMATS[name]
    codes = found.encode(RNG.normal(size=shape))
    real = found.decode(codes)
    assert real.shape == shape
    assert real.dtype == np.float64
    np.testing.assert_array_equal(found.encode(real), codes)


@pytest.mark.parametrize("basis", [np.array([1.0, 0.5, 0.2]), BASES])
def test_learned_levels_take_the_nearest_of_what_they_span(basis: Array) -> None:
    offset = np.array(0.3) if basis.ndim == 1 else OFFSETS
    format, x = LearnedLevels(basis, offset), RNG.normal(size=(3, 50)).astype(np.float32)
    real = format.decode(format.encode(x))
    for row, numbers, chosen in zip(range(3), x, real, strict=True):
        a, b = (basis, offset) if basis.ndim == 1 else (basis[row], offset[row])
        every = learned_levels.sign_codes(len(a)) @ a + b
        distance = np.abs(numbers[:, None] - every).min(1)
        np.testing.assert_allclose(np.abs(numbers - chosen), distance, atol=1e-6)


def test_ranks_count_levels_from_the_lowest() -> None:
    format = LearnedLevels(np.array([[1.0, -2.0], [0.5, 0.2]]), np.zeros(2))
    codes = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])
    real = format.decode(codes)
    np.testing.assert_array_equal(format.ranks(codes), np.argsort(np.argsort(real, 1), 1))


@pytest.mark.parametrize(
    ("name", "shape", "bits", "size"),
    [
        ("half", (3, 5), 16, 30),
        ("int8", (3, 5), 8, 15 + 4 + 8),
        ("int4", (3, 5), 4, 8 + 3 * (4 + 8)),
        ("levels", (4, 33), 3, 4 * (4 * 2 * 3) + 4 * 3 + 4),
        ("rows of levels", (3, 2, 40), 2, 4 * (3 * 2 * 2 * 2) + 4 * 3 * 2 + 4 * 3),
    ],
)
def test_bits_and_bytes(name: str, shape: tuple[int, ...], bits: int, size: int) -> None:
    found = FORMATS[name]
    assert (found.bits, found.bytes(shape)) == (bits, size)


def test_bytes_of_rows_with_widths_of_their_own_count_their_planes() -> None:
    basis = np.array([[1.0, 0.5], [1.0, 0.0], [2.0, 0.0]])
    format = LearnedLevels(basis, np.zeros(3), np.array([2, 1, 1]))
    assert format.bytes((3, 64)) == 4 * (4 * 2) + 4 * 4  # planes of two words, scales, no offset
