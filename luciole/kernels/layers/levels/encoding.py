"""Inputs of the LQ operators to bit planes: what a layer prepares for it, and the compiled loop.

Inputs are encoded in a basis of rising magnitudes, because its codes mostly rise with its levels:
then the comparisons of a binary search are the bits of the code. Where they do not, the code is
selected along with the thresholds, and with more than MAX_SELECTED bits both are looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, learned_levels
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.bit_lookups import WORD_BYTES
from luciole.kernels.jit.vector.quantizing import WordFloats
from luciole.kernels.jit.vector.vectors import Floats, Ints

MAX_SELECTED = 4
"""Bits up to which all thresholds are kept in registers."""


class EncodingRecord(Record):
    """Rows of floats, tables of levels, and where words go."""

    x: int
    """The first row; it and the number of rows may change before each call."""
    rows: int
    length: int
    """Floats of a row."""
    to: int
    thresholds: int
    codes: int
    bits: int
    step: int
    """Bytes from word to word of the result."""


encoding_at = reader(EncodingRecord)


@dataclass(frozen=True)
class Encoding:
    """An input's basis turned into one of rising magnitudes, its levels and their codes.

    ``thresholds`` are [2^K - 1], ``codes`` [2^K]: the code number of each level, bit i standing for
    element i of ``basis``.
    """

    basis: NDArray[np.float32]
    thresholds: NDArray[np.float32]
    codes: NDArray[np.uint32]

    @classmethod
    def of(cls, scales: Array, offset: float) -> Encoding:
        """Make the encoding of inputs with these scales."""
        levels, order = learned_levels.levels(scales, offset)
        rising = np.argsort(np.abs(scales), kind="stable")
        bits = (order[:, None] >> rising) & 1
        bits = np.where(scales[rising] < 0, 1 - bits, bits)
        numbers = (bits << np.arange(len(scales))).sum(1).astype(np.uint32)
        basis = np.abs(scales[rising]).astype(np.float32)
        return cls(basis, learned_levels.thresholds(levels), numbers)

    @property
    def bits(self) -> int:
        """Elements of the basis."""
        return len(self.basis)

    @property
    def kernel(self) -> jit.Kernel:
        """The kernel that encodes rows of floats, see ``encoding``."""
        if self.bits > MAX_SELECTED:
            return kernel(0, 0)
        rising = bool((self.codes == np.arange(len(self.codes))).all())
        return kernel(len(self.thresholds), 0 if rising else len(self.codes))

    def record(self, memory: Memory, rows: tuple[int, int], planes: int, to: int) -> int:
        """Keep a record for (number, length) of rows of floats and return its address; a word at
        ``to`` has room for this many planes. Whoever calls the kernel fills in ``x``.
        """
        levels, (count, length) = 1 << self.bits, rows
        record = EncodingRecord(
            x=0,
            rows=count,
            length=length,
            to=to,
            thresholds=memory.keep(self.thresholds, levels - 1),
            codes=memory.keep(self.codes, levels),
            bits=self.bits,
            step=WORD_BYTES * planes,
        )
        return memory.record(record)


@cache
def kernel(thresholds: int, numbers: int) -> jit.Kernel:
    """Make the kernel that keeps ``thresholds`` thresholds and ``numbers`` codes of levels in
    registers.
    """

    @jit.kernel
    def lq_encoding(r: EncodingRecord) -> None:
        """Encode rows of floats as words of bit planes, one row behind the other. Plane i of a word
        stands ``WORD_BYTES i`` bytes behind plane 0; what fills up the last word of a row is 0.
        """
        between = jit.float_splats(r.thresholds, thresholds)
        levels = between, jit.word_splats(r.codes, numbers)
        length, to, step = r.length, r.to, r.step
        for row in range(r.rows):
            x = r.x + 4 * row * length
            for w in range(length >> 5):
                _encode_word(levels, r, jit.word_floats(x + 128 * w), 0xFFFFFFFF, to + w * step)
            to += (length >> 5) * step
            rest = length & 31
            if rest:
                last = jit.first_floats(x + 4 * (length - rest), rest)
                _encode_word(levels, r, last, (1 << rest) - 1, to)
                to += step

    return lq_encoding


@jit.inlined
def _encode_word(
    levels: tuple[Floats, Ints], r: EncodingRecord, x: WordFloats, mask: int, to: int
) -> None:
    if jit.is_empty(levels[0]):
        _look_up_word(r, x, mask, to)
    else:
        jit.encode_word(x, levels[0], levels[1], mask, to)


@jit.separate
def _look_up_word(r: EncodingRecord, x: WordFloats, mask: int, to: int) -> None:
    numbers = jit.lowest_levels()
    step = 1 << (r.bits - 1)
    while step > 0:
        numbers = jit.raise_levels(numbers, x, r.thresholds, step)
        step >>= 1
    codes = jit.looked_up(numbers, r.codes)
    for i in range(r.bits):
        jit.write_word(to + i * WORD_BYTES, jit.plane(codes, i) & mask)
