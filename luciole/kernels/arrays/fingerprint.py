"""FarmHash's Fingerprint64 of many keys at once.

The function is fixed for ever: ``farmhashna::Hash64`` of https://github.com/google/farmhash (G.
Pike, 2014), which TFLite hashes with.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]

K0, K1, K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
BLOCK = 64
"""Bytes that are mixed in at once."""


def fingerprint64(keys: NDArray[np.uint8]) -> Words:
    """Hash keys [n, bytes], of 4 bytes at least, to [n] numbers. Sums and products wrap around."""
    size = keys.shape[1]
    if size <= 16:
        return _up_to_16(keys, size)
    if size <= 32:
        return _mixed(*_two(keys, size), _factor(size))
    return _up_to_64(keys, size) if size <= BLOCK else _longer(keys, size)


def _factor(size: int) -> np.uint64:
    return np.uint64((int(K2) + 2 * size) % 2**64)


def _at(keys: NDArray[np.uint8], place: int, width: int = 8) -> Words:
    """Read the little-endian word at a place of each key."""
    part = np.ascontiguousarray(keys[:, place : place + width])
    return part.view(np.dtype(f"<u{width}"))[:, 0].astype(np.uint64)


def _turned(words: Words, bits: int) -> Words:
    """Rotate words to the right."""
    return (words >> np.uint64(bits)) | (words << np.uint64(64 - bits))


def _folded(words: Words) -> Words:
    return words ^ (words >> np.uint64(47))


def _mixed(u: Words, v: Words, factor: np.uint64 | Words) -> Words:
    a = _folded((u ^ v) * factor)
    return _folded((v ^ a) * factor) * factor


def _up_to_16(keys: NDArray[np.uint8], size: int) -> Words:
    factor = _factor(size)
    if size < 8:
        a = np.uint64(size) + (_at(keys, 0, 4) << np.uint64(3))
        return _mixed(a, _at(keys, size - 4, 4), factor)
    a, b = _at(keys, 0) + K2, _at(keys, size - 8)
    return _mixed(_turned(b, 37) * factor + a, (_turned(a, 25) + b) * factor, factor)


def _two(keys: NDArray[np.uint8], size: int, first: np.uint64 = K1) -> tuple[Words, Words]:
    """Make two words of the first 16 bytes and the last 16."""
    a, b = _at(keys, 0) * first, _at(keys, 8)
    c, d = _at(keys, size - 8) * _factor(size), _at(keys, size - 16) * K2
    return _turned(a + b, 43) + _turned(c, 30) + d, a + _turned(b + K2, 18) + c


def _up_to_64(keys: NDArray[np.uint8], size: int) -> Words:
    factor = _factor(size)
    y, other = _two(keys, size, K2)
    z = _mixed(y, other, factor)
    e, f = _at(keys, 16) * factor, _at(keys, 24)
    g, h = (y + _at(keys, size - 32)) * factor, (z + _at(keys, size - 24)) * factor
    a = _at(keys, 0) * K2
    return _mixed(_turned(e + f, 43) + _turned(g, 30) + h, e + _turned(f + a, 18) + g, factor)


class _State:
    """State that blocks are mixed into: three words and two pairs for each key."""

    def __init__(self, keys: NDArray[np.uint8]) -> None:
        y = np.uint64((81 * int(K1) + 113) % 2**64)
        z = _folded(np.full(len(keys), (int(y) * int(K2) + 113) % 2**64, np.uint64)) * K2
        self.x = np.full(len(keys), 81 * int(K2) % 2**64, np.uint64) + _at(keys, 0)
        self.y, self.z = np.full(len(keys), y), z
        nothing = np.zeros(len(keys), np.uint64)
        self.v, self.w = (nothing, nothing), (nothing, nothing)

    def mix(
        self, block: NDArray[np.uint8], factor: np.uint64 | Words = K1, last: bool = False
    ) -> None:
        """Mix in 64 bytes of each key."""
        nine = np.uint64(9 if last else 1)
        v, w = self.v, self.w
        x = _turned(self.x + self.y + v[0] + _at(block, 8), 37) * factor
        y = _turned(self.y + v[1] + _at(block, 48), 42) * factor
        x ^= w[1] * nine
        y += v[0] * nine + _at(block, 40)
        z = _turned(self.z + w[0], 33) * factor
        self.v = _pair(block, v[1] * factor, x + w[0])
        self.w = _pair(block[:, 32:], z + w[1], y + _at(block, 16))
        self.x, self.y, self.z = z, y, x


def _pair(block: NDArray[np.uint8], a: Words, b: Words) -> tuple[Words, Words]:
    """Mix 32 bytes of each key into two words."""
    first, *middle, last = (_at(block, place) for place in (0, 8, 16, 24))
    a = a + first
    b = _turned(b + a + last, 21)
    whole = a + middle[0] + middle[1]
    return whole + last, b + _turned(whole, 44) + a


def _longer(keys: NDArray[np.uint8], size: int) -> Words:
    state = _State(keys)
    for start in range(0, (size - 1) // BLOCK * BLOCK, BLOCK):
        state.mix(keys[:, start : start + BLOCK])
    factor = K1 + ((state.z & np.uint64(0xFF)) << np.uint64(1))
    w = state.w[0] + np.uint64((size - 1) % BLOCK)
    v = state.v[0] + w
    state.v, state.w = (v, state.v[1]), (w + v, state.w[1])
    state.mix(keys[:, size - BLOCK :], factor, last=True)
    first = _mixed(state.v[0], state.w[0], factor) + _folded(state.y) * K0 + state.z
    return _mixed(first, _mixed(state.v[1], state.w[1], factor) + state.x, factor)
