"""Differing bits counted by tables of 16 bytes, four bits at a time: ``vpshufb``.

Which of four bits of an input choose a table, and four bits of a weight one of its bytes: how many
of them differ. That takes an addition besides, for 32 outputs, where an exclusive or and a count of
the bits in bytes take eight operations (Mula, Kurz and Lemire, Faster Population Counts Using AVX2
Instructions, 2018, section 2.4, look up the bits themselves).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels.jit.emits import Address, Builder, Int64, UInt32, Value, emits
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.vectors import (
    I32,
    INTS,
    LANES,
    OCTETS,
    Vectors,
    gather,
    load,
    of_llvm,
    store,
    wide_shuffle,
)

LOOKS_UP = has("avx2") and not has("avx512bw")
"""Whether the machine counts best by lookups."""

SHIFTS = (0, 8, 16, 24, 4, 12, 20, 28)
"""Where the fours of a word's bits begin, in the order in which they are met."""

WORD_BYTES = 4 * (1 + LOOKS_UP)
"""Bytes that a word of an input takes: one for each four bits, 16 times their number."""

PARTS = (len(SHIFTS),) if LOOKS_UP else ()
"""The axis that ``as_met`` inserts."""

_LOW, _HIGH = 0x0F0F0F0F, 0xF0F0F0F0
_I8, _I128 = ir.IntType(8), ir.VectorType(ir.IntType(8), 16)


def as_met(words: NDArray[np.uint32]) -> Array:
    """Lay weights' words [..., weight planes, outputs] out as ``xor_popcount`` meets them: fours of
    bits are [..., 8, weight planes, outputs].
    """
    if not LOOKS_UP:
        return words
    parts = [words >> np.uint32(by) & np.uint32(15) for by in SHIFTS]
    return np.stack(parts, -3).astype(np.uint8)


def store_word(builder: Builder, bits: Value, to: Value, plane: int) -> None:
    """Write a plane's word of an input as ``xor_popcount`` meets it."""
    store(builder, _spread(builder, bits) if LOOKS_UP else bits, to, WORD_BYTES * plane)


def _spread(builder: Builder, bits: Value) -> Value:
    low, high = (builder.and_(bits, ir.Constant(I32, mask)) for mask in (_LOW, _HIGH))
    low = builder.zext(builder.shl(low, ir.Constant(I32, 4)), I64)
    return builder.or_(low, builder.shl(builder.zext(high, I64), ir.Constant(I64, 32)))


@emits
def write_word(builder: Builder, to: Address, bits: UInt32) -> None:
    """Write a word of an input to an address as ``xor_popcount`` meets it."""
    store_word(builder, bits, to, 0)


@emits
def ones(builder: Builder, words: Address, number: Int64) -> Int64:
    """Count the set bits of one of the words of inputs that stand at an address."""
    form = I64 if LOOKS_UP else I32
    place = builder.mul(number, ir.Constant(I64, WORD_BYTES))
    count = builder.ctpop(load(builder, form, builder.add(words, place)))
    return count if LOOKS_UP else builder.zext(count, I64)


def look_up(builder: Builder, tile: Vectors, places: Sequence[Value], weights: Value) -> Value:
    """Add to counters [pixels, input planes, weight planes, vectors of 32 outputs] the bits in
    which pixels' words at addresses and weights differ.
    """
    _, planes, weight_planes, vectors = tile.kind.shape
    size, tables = weight_planes * vectors, _tables(builder)
    counts = [builder.extract_value(tile.value, k) for k in range(tile.kind.count)]
    for part in range(len(SHIFTS)):
        numbers = [load(builder, OCTETS, weights, 32 * (part * size + k)) for k in range(size)]
        at = [(place, WORD_BYTES * i + part) for place in places for i in range(planes)]
        for first, (place, offset) in enumerate(at):
            table = _table(builder, tables, place, offset)
            for k, number in enumerate(numbers, first * size):
                chosen = _chosen(builder, table, number)
                counts[k] = of_llvm(builder, "llvm.uadd.sat.v32i8", counts[k], chosen)
    return gather(builder, counts)


def _tables(builder: Builder) -> Value:
    """Return the address of a constant [16, 16]: in how many bits two numbers differ."""
    counts = [(a ^ b).bit_count() for a in range(16) for b in range(16)]
    constant = ir.Constant(ir.ArrayType(_I8, 256), counts)
    table = cgutils.global_constant(builder, "differing_bits", constant)
    table.align = 64
    return builder.ptrtoint(table, I64)


def _table(builder: Builder, tables: Value, place: Value, offset: int) -> Value:
    """Load the table of four bits of an input twice, for both halves of a register."""
    four = builder.zext(load(builder, _I8, place, offset, align=1), I64)
    table = load(builder, _I128, builder.add(tables, four), align=16)
    return wide_shuffle(builder, table, table, 2 * list(range(16)))


def _chosen(builder: Builder, table: Value, numbers: Value) -> Value:
    kind = ir.FunctionType(OCTETS, [OCTETS, OCTETS])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pshuf.b")
    return builder.call(function, [table, numbers])


def widened(builder: Builder, octets: Sequence[Value]) -> list[Value]:
    """Make vectors of 16 integers of vectors of 32 bytes."""
    halves = []
    for vector in octets:
        for first in (0, LANES):
            half = wide_shuffle(builder, vector, vector, range(first, first + LANES))
            halves.append(builder.zext(half, INTS))
    return halves
