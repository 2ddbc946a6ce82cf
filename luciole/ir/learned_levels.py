"""Learned-level codes: a value is an offset plus a sum of +-a_i, written as one sign bit for each
basis element.

This is the arithmetic of the LQ operators' file form (LQ-Nets, Zhang et al. 2018, section 3): a
basis of K elements spans 2^K levels; a code is the vector of signs, bit i of its number standing
for element i.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

WORD = 32
"""Bits in one packed word; element k is bit k % 32, least significant first, of word k // 32."""

Floats = NDArray[np.floating]


@cache
def sign_codes(bits: int) -> NDArray[np.float64]:
    """List every sign vector of a basis with ``bits`` elements: [2^bits, bits] of -1 and +1, row =
    code number. Nobody may write to it.
    """
    codes = np.arange(2**bits)
    signs = np.asarray(((codes[:, None] >> np.arange(bits)) & 1) * 2.0 - 1.0, np.float64)
    signs.setflags(write=False)
    return signs


def spanned(basis: Floats, offset: Floats | float = 0.0) -> NDArray[np.float64]:
    """Compute the levels of bases [..., K] and offsets [...] in the order of their code numbers:
    [..., 2^K].
    """
    basis = np.asarray(basis, np.float64)
    values = basis @ sign_codes(basis.shape[-1]).T + np.asarray(offset, np.float64)[..., None]
    return np.asarray(values)


def levels(
    basis: Floats, offset: Floats | float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Sort the levels that bases span, in rising order, and the code number behind each.

    ``basis`` is [..., K] and ``offset`` [...]; both results are [..., 2^K]. The sort is stable, so
    equal levels keep the order of their code numbers.
    """
    values = spanned(basis, offset)
    order = np.argsort(values, axis=-1, kind="stable")
    return np.take_along_axis(values, order, -1), order


def thresholds(sorted_levels: Floats) -> NDArray[np.float32]:
    """Compute where one level ends and the next begins: the middle between neighbours, [..., 2^K -
    1] in float32.
    """
    wide = np.asarray(sorted_levels, np.float64)
    return ((wide[..., :-1] + wide[..., 1:]) / 2).astype(np.float32)


def encode(x: Floats, between: NDArray[np.float32]) -> NDArray[np.intp]:
    """Find the level of each element of ``x`` by binary search in one vector of thresholds.

    Level l takes what lies in (t_l, t_l+1]: a tie goes to the lower level, and NaN to the lowest.
    """
    index = np.searchsorted(between, np.asarray(x, np.float32), side="left")
    return np.where(np.isnan(x), 0, index)


def encode_rows(x: Floats, between: Floats) -> NDArray[np.intp]:
    """Apply ``encode`` to rows [rows, n] that each have thresholds of their own [rows, 2^K - 1]."""
    rows, count = between.shape
    if rows == 1:
        return np.where(np.isnan(x), 0, np.searchsorted(between[0], x))
    index = np.zeros(np.shape(x), np.intp)
    begins = count * np.arange(rows)[:, None]
    step = (count + 1) // 2
    while step:
        above = x > between.take(index + (begins + (step - 1)))
        index += step * above
        step //= 2
    return index


def pack(bits: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Pack bits [..., n] as words [..., ceil(n / 32)]; padding bits are 0."""
    n = bits.shape[-1]
    padded = np.zeros((*bits.shape[:-1], -(-n // WORD) * WORD), np.bool_)
    padded[..., :n] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view("<i4")


def unpack(words: NDArray[np.int32], n: int) -> NDArray[np.bool_]:
    """Undo ``pack``: return the first ``n`` bits of words [..., ceil(n / 32)] as [..., n]."""
    octets = np.ascontiguousarray(words, "<i4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=n, bitorder="little").astype(np.bool_)


def planes(codes: NDArray[np.integer], bits: int) -> NDArray[np.int32]:
    """Turn code numbers [..., n] into packed bit planes [..., bits, ceil(n / 32)]."""
    signs = (codes[..., None, :] >> np.arange(bits)[:, None]) & 1
    return pack(signs.astype(np.bool_))


def weight_planes(codes: NDArray[np.integer], bits: int) -> NDArray[np.int32]:
    """Pack code numbers [o, ..., n] as the LQ operators hold them: [o, bits, ..., ceil(n / 32)]."""
    return np.ascontiguousarray(np.moveaxis(planes(codes, bits), -2, 1))


def numbers(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Compute the code numbers [o, n] of up to 8 bit planes [o, K, n]."""
    codes = np.zeros(bits[:, 0].shape, np.uint8)
    for k in range(bits.shape[1]):
        codes |= bits[:, k].astype(np.uint8) << np.uint8(k)
    return codes


def plane_bytes(shape: tuple[int, ...], bits: int) -> int:
    """Count the bytes of the packed planes of an array [..., n] of codes with ``bits`` bits."""
    *rows, n = shape
    return math.prod(rows) * bits * -(-n // WORD) * WORD // 8


def decode(
    words: NDArray[np.int32], basis: Floats, n: int, offset: Floats | float = 0.0
) -> NDArray[np.float64]:
    """Decode the values behind packed planes [..., K, ceil(n / 32)] and bases [..., K]: [...,
    n].
    """
    signs = unpack(words, n) * 2.0 - 1.0
    values = np.einsum("...kn,...k->...n", signs, np.asarray(basis, np.float64))
    return np.asarray(values + np.asarray(offset, np.float64)[..., None])
