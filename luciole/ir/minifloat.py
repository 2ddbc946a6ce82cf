"""Minifloats: floating-point numbers of a few bits, one of them the sign, times a power of two.

An exponent of e bits has IEEE 754's bias 2^(e-1) - 1. Its lowest value stands for 0 and the
subnormal numbers, its highest is reserved, as IEEE 754 reserves it; what is too large becomes the
largest number. Halves are rounded to even. Without a mantissa numbers are logarithmic, 0 and powers
of two, and halves are rounded to 0 and to the larger power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import Array
from luciole.ir.value import element_count

EXPONENTS, MANTISSAS, MOST_SHIFT = range(2, 8), range(17), 32
"""Bits of exponents and mantissas, and the largest power of two beside them: with these all sums in
between are float32 numbers.
"""


@dataclass(frozen=True)
class Minifloat:
    """The numbers 2^shift (-1)^s 2^(E - bias) 1.M, with ``exponent`` bits of E and ``mantissa`` of
    M; a code is s, E and M, from the highest bit on.
    """

    exponent: int
    mantissa: int
    shift: int = 0

    def __str__(self) -> str:
        return f"<{self.exponent},{self.mantissa}>"

    def faults(self) -> Iterator[str]:
        """List, in a sentence each, the numbers of bits that are not possible."""
        limits = (("exponent", EXPONENTS), ("mantissa", MANTISSAS))
        for name, possible in limits:
            if getattr(self, name) not in possible:
                bits = f"{possible.start} to {possible.stop - 1}"
                yield f"the {name} has {getattr(self, name)} bits, {bits} are possible"
        if abs(self.shift) > MOST_SHIFT:
            yield f"the shift is {self.shift}, {-MOST_SHIFT} to {MOST_SHIFT} are possible"

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return 1 + self.exponent + self.mantissa

    @property
    def top(self) -> int:
        """The power of two of the largest number, without the shift."""
        return int(2 ** (self.exponent - 1)) - 1

    @property
    def largest(self) -> float:
        """The largest number."""
        return math.ldexp(2.0 - 2.0**-self.mantissa, self.top + self.shift)

    @property
    def least_normal(self) -> float:
        """The smallest positive number that is not subnormal."""
        return math.ldexp(1.0, 1 - self.top + self.shift)

    def round(self, x: Array) -> NDArray[np.float32]:
        """Find the nearest numbers, halves to even, NaN where there was one."""
        inside = np.clip(np.asarray(x, np.float32), -self.largest, self.largest)
        step = self._steps(inside)
        return np.asarray(np.rint(inside / step) * step, np.float32)

    def encode(self, x: Array) -> NDArray[np.uint32]:
        """Find the codes of the nearest numbers; NaN has none and becomes 0."""
        rounded = np.nan_to_num(self.round(x), nan=0.0)
        step = self._steps(rounded)
        whole = np.abs(rounded / step).astype(np.uint32)
        place = np.log2(step / (self.least_normal * 2.0**-self.mantissa)).astype(np.uint32)
        sign = np.signbit(rounded).astype(np.uint32) << (self.bits - 1)
        return np.asarray(whole + (place << self.mantissa) + sign, np.uint32)

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Compute the numbers that codes stand for; NaN for the exponent that is reserved."""
        numbers = np.asarray(codes, np.uint32)
        place = (numbers >> self.mantissa) & (2**self.exponent - 1)
        fraction = (numbers & (2**self.mantissa - 1)) / 2.0**self.mantissa
        value = np.where(place == 0, 2 * fraction, 1 + fraction) * self.least_normal / 2.0
        value = np.ldexp(value, place.astype(np.int64))
        value[place == 2**self.exponent - 1] = np.nan
        return np.asarray(np.where(numbers >> (self.bits - 1) & 1, -value, value), np.float64)

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that an array of this shape takes in a file, code behind code."""
        return -(-element_count(shape) * self.bits // 8)

    def _steps(self, x: Array) -> NDArray[np.float32]:
        """Compute the distance from each number to the next: its power of two times 2^-mantissa."""
        _, power = np.frexp(np.maximum(np.abs(x), np.float32(self.least_normal)))
        return np.asarray(np.ldexp(np.float32(1), power - 1 - self.mantissa), np.float32)


def pack_codes(codes: Array, bits: int) -> NDArray[np.uint8]:
    """Pack codes one behind the other, the lowest bit first: [ceil(n bits / 8)]."""
    flat = codes.reshape(-1)
    planes = np.empty((flat.size, bits), np.uint8)
    for bit in range(bits):
        planes[:, bit] = (flat >> bit) & 1
    return np.packbits(planes, bitorder="little")


def unpack_codes(packed: Array, bits: int, count: int) -> NDArray[np.uint32]:
    """Take ``count`` codes out of bytes that hold at least as many: [count]."""
    planes = np.unpackbits(packed.reshape(-1), count=count * bits, bitorder="little")
    codes = np.zeros(count, np.uint32)
    for bit in range(bits):
        codes |= planes[bit::bits].astype(np.uint32) << np.uint32(bit)
    return codes
