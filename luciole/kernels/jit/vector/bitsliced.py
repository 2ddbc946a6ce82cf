"""Positional popcount: 512 counters of set bits, bit-sliced over 8 vectors.

A counter is a number in two's complement of 8 bits, and bit k of all 512 of them is one vector.
Adding a row of 512 bits costs two operations, whatever the counters' number: a tree of carry-save
adders adds 8 rows or 32 at once. That is the circuit of Harley and Seal (Mula, Kurz and Lemire,
Faster Population Counts Using AVX2 Instructions, 2018), for the count at each position as in
Klarqvist, Mula and Lemire, Efficient Computation of Positional Population Counts Using SIMD
Instructions, 2021. Needs AVX-512 and GFNI, see ``AVAILABLE``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Float32,
    Form,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.processor import features
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
    Same,
    Tile,
    Vectors,
    gather,
    load,
    of_llvm,
    pointer,
    prefetch_line,
    splat,
    store,
)

AVAILABLE = {"avx512f", "avx512bw", "avx512vbmi2", "gfni"} <= features()
"""Whether this machine has the instructions that this module and ``sort_word`` use."""

SLOW_COUNTS = llvm.get_host_cpu_name() != "znver5"
"""Whether bits are counted at half the rate of additions or less: Zen 5 alone has this module's
instructions and counts 2 vectors of bits a cycle.
"""

COUNTERS = 512
"""Counters of one tile: bits of a row."""

ROW_BYTES = COUNTERS // 8

MOST_ROWS = 120
"""Rows that may be added to counters of one sign, so that 8 bits hold the count."""

BITS = 8

Bits: TypeAlias = Annotated[Vectors, Tile(types.int32, BITS)]
"""512 counters: one vector for each of their bits."""

_I8, _I16 = ir.IntType(8), ir.IntType(16)
_SUM, _CARRY = 0x96, 0xE8
"""Truth tables of a full adder for ``vpternlogd``."""


def _carry_save_adder(builder: Builder, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """Add three bits, 512 times: sum and carry, by two ``vpternlogd``."""
    name = "llvm.x86.avx512.pternlog.d.512"
    tables = (ir.Constant(I32, _SUM), ir.Constant(I32, _CARRY))
    sum_, carry = (_call(builder, name, INTS, a, b, c, table) for table in tables)
    return sum_, carry


def _call(builder: Builder, name: str, kind: Form, *args: Value) -> Value:
    function = ir.FunctionType(kind, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)


def _add_bits(builder: Builder, bits: list[Value], place: int, rows: Sequence[Value]) -> Value:
    """Add rows of bits that weigh 2^place, an even number of them; what is carried to the next
    place is added up there, until one row is left, which is returned.

    The counters' own bits come last, so that one addition need not wait for the one before: a full
    adder takes 3 cycles, and 4 begin in each.
    """
    left, carries = deque(rows), []
    while len(left) > 2:
        sum_, carry = _carry_save_adder(builder, left.popleft(), left.popleft(), left.popleft())
        left.append(sum_)
        carries.append(carry)
    first, second = left
    bits[place], carry = _carry_save_adder(builder, first, second, bits[place])
    carries.append(carry)
    return carry if len(carries) == 1 else _add_bits(builder, bits, place + 1, carries)


def _ripple(builder: Builder, bits: list[Value], place: int, row: Value) -> None:
    """Add one row of bits that weigh 2^place, and let it be carried as far as it goes."""
    for k in range(place, BITS):
        bits[k], row = builder.xor(bits[k], row), builder.and_(bits[k], row)


def _row(builder: Builder, base: Value, numbers: Value, place: int) -> Value:
    """Load the row of bits whose number stands at a place of a list."""
    number = load_half(builder, numbers, 2 * place)
    offset = builder.shl(builder.zext(number, I64), ir.Constant(I64, 6))
    row = builder.load(pointer(builder, builder.add(base, offset), INTS))
    row.align = ROW_BYTES
    return row


def load_half(builder: Builder, address: Value, offset: int) -> Value:
    """Load the 16-bit integer at an address."""
    loaded = builder.load(pointer(builder, address, _I16, offset))
    loaded.align = 2
    return loaded


def _add_rows(builder: Builder, eights: int, counters: Value, base: Value, numbers: Value) -> Value:
    """Add ``eights`` times 8 rows of bits, see ``add_8_rows``."""
    bits = [builder.extract_value(counters, k) for k in range(BITS)]
    carries = []
    for first in range(0, 8 * eights, 8):
        rows = [_row(builder, base, numbers, first + k) for k in range(8)]
        carries.append(_add_bits(builder, bits, 0, rows))
    place = 3
    if eights > 1:
        carries = [_add_bits(builder, bits, place, carries)]
        place += eights.bit_length() - 1
    _ripple(builder, bits, place, carries[0])
    return gather(builder, bits)


@emits
def add_8_rows(builder: Builder, counters: Bits, base: Address, numbers: Address) -> Bits:
    """Add 8 rows of 512 bits to counters: the 64 bytes at ``base + 64 n`` for each n of a list of
    16-bit integers at ``numbers``.
    """
    return _add_rows(builder, 1, counters, base, numbers)


@emits
def add_32_rows(builder: Builder, counters: Bits, base: Address, numbers: Address) -> Bits:
    """Add 32 rows, see ``add_8_rows``."""
    return _add_rows(builder, 4, counters, base, numbers)


@emits
def no_counts(builder: Builder) -> Bits:
    """Make counters at 0."""
    return gather(builder, [ir.Constant(INTS, None)] * BITS)


@emits
def complement(builder: Builder, counters: Bits) -> Bits:
    """Replace every counter c by -1 - c."""
    bits = [builder.extract_value(counters, k) for k in range(BITS)]
    return gather(builder, [builder.not_(bit) for bit in bits])


@emits
def write_counts(builder: Builder, counters: Bits, to: Address) -> None:
    """Write counters as 512 bytes: byte 16 v + e is the counter in bit ``lane(v, e)`` of a row.

    Bytes of one lane are brought together by interleaving (bytes, then pairs, then fours); one
    product of 8 x 8 bits with the unit matrix, ``vgf2p8affineqb``, then swaps rows and columns.
    """
    bits = [builder.extract_value(counters, k) for k in range(BITS)]
    octets = ir.VectorType(_I8, ROW_BYTES)
    unit = ir.Constant(octets, [1 << k % 8 for k in range(ROW_BYTES)])
    for place, vector in enumerate(_interleaved(builder, bits[::-1])):
        swapped = _call(
            builder,
            "llvm.x86.vgf2p8affineqb.512",
            octets,
            unit,
            builder.bitcast(vector, octets),
            ir.Constant(_I8, 0),
        )
        store(builder, swapped, to, ROW_BYTES * place)


def lane(vector: int, element: int) -> int:
    """Return the bit of a row whose counter stands at byte ``16 vector + element`` of what
    ``write_counts`` writes.
    """
    return 16 * (vector // 4) + 128 * (vector % 4) + element


def _interleaved(builder: Builder, vectors: Sequence[Value]) -> list[Value]:
    """8 vectors as 8 others: every 8 bytes of theirs are the bytes of one place, in order."""
    pairs = _interleaved_pairs(builder, vectors, 1)
    fours = _interleaved_pairs(builder, [pairs[i] for i in (0, 2, 1, 3, 4, 6, 5, 7)], 2)
    return _interleaved_pairs(builder, [fours[i] for i in (0, 4, 1, 5, 2, 6, 3, 7)], 4)


def _interleaved_pairs(builder: Builder, vectors: Sequence[Value], size: int) -> list[Value]:
    """Neighbours interleaved in elements of ``size`` bytes, within every 16 bytes: the lower half
    of both, then the upper half.
    """
    found = []
    for first, second in zip(vectors[::2], vectors[1::2], strict=True):
        for upper in (0, 1):
            found.append(_unpacked(builder, first, second, size, upper))
    return found


def _unpacked(builder: Builder, first: Value, second: Value, size: int, upper: int) -> Value:
    count, half = ROW_BYTES // size, 8 // size
    kind = ir.VectorType(ir.IntType(8 * size), count)
    order: list[int] = []
    for block in range(0, count, 2 * half):
        for k in range(half):
            order += [block + upper * half + k, count + block + upper * half + k]
    mask = ir.Constant(ir.VectorType(I32, count), order)
    return builder.shuffle_vector(builder.bitcast(first, kind), builder.bitcast(second, kind), mask)


@emits
def totals(builder: Builder, rows: Vectors, at: Address, factor: Float32, plus: Float32) -> Same:
    """Load a tile of floats like ``rows`` from an address, times ``factor``, plus ``plus``."""
    factor, plus = splat(builder, factor), splat(builder, plus)
    given = [load(builder, FLOATS, at, 4 * LANES * k) for k in range(rows.kind.count)]
    return gather(builder, [of_llvm(builder, FMA, g, factor, plus) for g in given])


@emits
def add_counts(builder: Builder, rows: Vectors, counts: Address, factor: Address) -> Same:
    """Add to a tile of floats the signed bytes at an address, times the float at another."""
    factor = splat(builder, load(builder, F32, factor))
    octets = ir.VectorType(_I8, LANES)
    results = []
    for k in range(rows.kind.count):
        count = builder.sitofp(load(builder, octets, counts, LANES * k), FLOATS)
        before = builder.extract_value(rows.value, k)
        results.append(of_llvm(builder, FMA, count, factor, before))
    return gather(builder, results)


Combined: TypeAlias = Annotated[Vectors, lambda rows, *_: Tile(types.float32, 1, rows.shape[0])]
"""Results [1, vectors]."""


@emits
def combine(builder: Builder, rows: Vectors, scales: Address, start: Address) -> Combined:
    """Combine sums [vectors, weight planes] to results [1, vectors]: start + sum_j scale_j sum_j,
    with scales [vectors, weight planes, 16] and starts [vectors, 16] at addresses.
    """
    vectors, planes = rows.kind.shape
    found = []
    for v in range(vectors):
        sum_ = load(builder, FLOATS, start, 4 * LANES * v)
        for k in range(v * planes, (v + 1) * planes):
            scale = load(builder, FLOATS, scales, 4 * LANES * k)
            sum_ = of_llvm(builder, FMA, builder.extract_value(rows.value, k), scale, sum_)
        found.append(sum_)
    return gather(builder, found)


@emits
def prefetch(builder: Builder, address: Address) -> None:
    """Fetch a line of 64 bytes to the second nearest cache."""
    prefetch_line(builder, address, 0, 2)
