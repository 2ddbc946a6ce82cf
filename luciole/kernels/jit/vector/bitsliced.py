"""Positional popcount: 512 or 256 counters of set bits, bit-sliced over 8 vectors.

A counter is a number in two's complement of 8 bits, and bit k of all of them is one vector. Adding
a row of bits costs two carry-save adders at most, whatever the counters' number: a tree of them
adds 8 rows or 32 at once. That is the circuit of Harley and Seal (Mula, Kurz and Lemire, Faster
Population Counts Using AVX2 Instructions, 2018), for the count at each position as in Klarqvist,
Mula and Lemire, Efficient Computation of Positional Population Counts Using SIMD Instructions,
2021. Rows have 512 bits where the machine has the registers for it, see ``WIDE``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Annotated, TypeAlias

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
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bit_matrices import by_product, by_swaps
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
    wide_shuffle,
)

WIDE = has("avx512f", "avx512bw", "avx512vbmi2", "gfni")
"""Whether rows have 512 bits: an adder is two instructions then, and bits are turned by one."""

SLOW_COUNTS = not has("znver5")
"""Whether bits are counted at half the rate of additions or less: of the machines with 512 bits Zen
5 alone counts 2 vectors of bits a cycle.
"""

COUNTERS = 512 if WIDE else 256
"""Counters of one tile: bits of a row."""

ROW_BYTES = COUNTERS // 8

MOST_ROWS = 120
"""Rows that may be added to counters of one sign, so that 8 bits hold the count."""

BITS = 8

_TOGETHER = 32 * LANES // COUNTERS
"""Bits of counters that one vector of a tile holds, one behind the other."""

Bits: TypeAlias = Annotated[Vectors, Tile(types.int32, BITS // _TOGETHER)]
"""A row of counters: a vector for each of their bits."""

_ROW = ir.VectorType(I32, COUNTERS // 32)
_I8, _I16 = ir.IntType(8), ir.IntType(16)
_SUM, _CARRY = 0x96, 0xE8
"""Truth tables of a full adder for ``vpternlogd``."""


def _planes(builder: Builder, counters: Value) -> list[Value]:
    """Take the vectors of a tile apart: one for each bit of the counters."""
    size = COUNTERS // 32
    planes = []
    for k in range(BITS):
        vector, part = builder.extract_value(counters, k // _TOGETHER), k % _TOGETHER
        order = range(size * part, size * (part + 1))
        planes.append(wide_shuffle(builder, vector, vector, order))
    return planes


def _tile(builder: Builder, planes: Sequence[Value]) -> Value:
    """Put vectors together to a tile, see ``_planes``."""
    if _TOGETHER == 1:
        return gather(builder, planes)
    pairs = zip(planes[::2], planes[1::2], strict=True)
    return gather(builder, [wide_shuffle(builder, a, b, range(LANES)) for a, b in pairs])


def _carry_save_adder(builder: Builder, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """Add three bits at each place: sum and carry, by two ``vpternlogd`` or five operations."""
    if not WIDE:
        either = builder.xor(a, b)
        both = builder.or_(builder.and_(a, b), builder.and_(either, c))
        return builder.xor(either, c), both
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

    With 512 bits the counters' own bits come last, so that one addition need not wait for the one
    before: a full adder takes 3 cycles, and 4 begin in each. Else they take part in each addition,
    so that few registers are needed; they wait for one operation only.
    """
    left, carries = deque(rows), []
    while not WIDE and len(left) > 2:
        bits[place], carry = _carry_save_adder(builder, left.popleft(), left.popleft(), bits[place])
        carries.append(carry)
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
    offset = builder.shl(builder.zext(number, I64), ir.Constant(I64, ROW_BYTES.bit_length() - 1))
    row = builder.load(pointer(builder, builder.add(base, offset), _ROW))
    row.align = ROW_BYTES
    return row


def load_half(builder: Builder, address: Value, offset: int) -> Value:
    """Load the 16-bit integer at an address."""
    loaded = builder.load(pointer(builder, address, _I16, offset))
    loaded.align = 2
    return loaded


def _add_rows(builder: Builder, eights: int, counters: Value, base: Value, numbers: Value) -> Value:
    """Add ``eights`` times 8 rows of bits, see ``add_8_rows``."""
    bits = _planes(builder, counters)
    carries = []
    for first in range(0, 8 * eights, 8):
        rows = [_row(builder, base, numbers, first + k) for k in range(8)]
        carries.append(_add_bits(builder, bits, 0, rows))
    place = 3
    if eights > 1:
        carries = [_add_bits(builder, bits, place, carries)]
        place += eights.bit_length() - 1
    _ripple(builder, bits, place, carries[0])
    return _tile(builder, bits)


@emits
def add_8_rows(builder: Builder, counters: Bits, base: Address, numbers: Address) -> Bits:
    """Add 8 rows of bits to counters: the ROW_BYTES bytes at ``base + ROW_BYTES n`` for each n of a
    list of 16-bit integers at ``numbers``.
    """
    return _add_rows(builder, 1, counters, base, numbers)


@emits
def add_32_rows(builder: Builder, counters: Bits, base: Address, numbers: Address) -> Bits:
    """Add 32 rows, see ``add_8_rows``."""
    return _add_rows(builder, 4, counters, base, numbers)


@emits
def no_counts(builder: Builder) -> Bits:
    """Make counters at 0."""
    return gather(builder, [ir.Constant(INTS, None)] * (BITS // _TOGETHER))


@emits
def complement(builder: Builder, counters: Bits) -> Bits:
    """Replace every counter c by -1 - c."""
    count = BITS // _TOGETHER
    return gather(builder, [builder.not_(builder.extract_value(counters, k)) for k in range(count)])


@emits
def write_counts(builder: Builder, counters: Bits, to: Address) -> None:
    """Write counters as COUNTERS bytes: byte 16 v + e is the counter in bit ``lane(v, e)`` of a
    row.
    """
    bits = _planes(builder, counters)
    octets = by_product(builder, bits) if WIDE else by_swaps(builder, bits)
    for place, vector in enumerate(octets):
        store(builder, vector, to, ROW_BYTES * place)


def lane(vector: int, element: int) -> int:
    """Return the bit of a row whose counter stands at byte ``16 vector + element`` of the output of
    ``write_counts``.
    """
    if WIDE:
        return 16 * (vector // 4) + 128 * (vector % 4) + element
    bit, octet = divmod(16 * vector + element, ROW_BYTES)
    return 8 * octet + bit


@emits
def totals(builder: Builder, rows: Vectors, at: Address, factor: Float32, plus: Float32) -> Same:
    """Load a tile of floats like ``rows`` from an address, times ``factor``, plus ``plus``."""
    factor, plus = splat(builder, factor), splat(builder, plus)
    loaded = [load(builder, FLOATS, at, 4 * LANES * k) for k in range(rows.kind.count)]
    return gather(builder, [of_llvm(builder, FMA, g, factor, plus) for g in loaded])


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
    sums = []
    for v in range(vectors):
        sum_ = load(builder, FLOATS, start, 4 * LANES * v)
        for k in range(v * planes, (v + 1) * planes):
            scale = load(builder, FLOATS, scales, 4 * LANES * k)
            sum_ = of_llvm(builder, FMA, builder.extract_value(rows.value, k), scale, sum_)
        sums.append(sum_)
    return gather(builder, sums)


@emits
def prefetch(builder: Builder, address: Address) -> None:
    """Fetch a line of 64 bytes to the second nearest cache."""
    prefetch_line(builder, address, 0, 2)
