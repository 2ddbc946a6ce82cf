"""Floats in vector registers sorted by level: lists of their numbers."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.quantizing import WordFloats, word
from luciole.kernels.jit.vector.vectors import I32, LANES, Vectors, load, store, wide_splat

COMPRESSES = has("avx512bw", "avx512vbmi2")
"""Whether the machine moves chosen integers of 16 bits next to each other: ``vpcompressw``."""

_I8, _I16 = ir.IntType(8), ir.IntType(16)
_HALVES = ir.VectorType(_I16, 2 * LANES)
_AT_ONCE = 8
"""Numbers that are appended at once where it does not."""


@emits
def sort_word(
    builder: Builder,
    x: WordFloats,
    thresholds: Vectors,
    first: Int64,
    mask: Int64,
    lists: Address,
    stride: Int64,
    counts: Address,
) -> None:
    """Append the numbers of 32 floats, ``first`` and up, to the lists of their levels: 16-bit
    integers, list l at ``lists + l stride`` with ``counts[l]`` (int64) of them so far.

    Bits of ``mask`` say which floats count. Up to 31 places behind a list's end are written to.
    """
    levels = thresholds.kind.count + 1
    numbers = _numbers(builder, first, 2 * LANES if COMPRESSES else _AT_ONCE)
    mask = builder.trunc(mask, I32)
    words = [_above(builder, x, thresholds.value, level) for level in range(levels - 1)]
    for level in range(levels):
        members = mask if level == 0 else builder.and_(mask, words[level - 1])
        if level < levels - 1:
            members = builder.and_(members, builder.not_(words[level]))
        place = builder.add(counts, ir.Constant(I64, 8 * level))
        start = builder.add(lists, builder.mul(stride, ir.Constant(I64, level)))
        append = _append_32 if COMPRESSES else _append_some
        append(builder, numbers, members, start, place)


def _append_32(
    builder: Builder, numbers: Value, members: Value, start: Value, length: Value
) -> None:
    """Append the members among 32 numbers, whose bit is set, to a list whose length stands at an
    address.
    """
    count = load(builder, I64, length)
    _store_halves(builder, _compressed(builder, numbers, members), _end(builder, start, count))
    store(builder, builder.add(count, builder.zext(builder.ctpop(members), I64)), length)


def _append_some(
    builder: Builder, numbers: Value, members: Value, start: Value, length: Value
) -> None:
    """Append the members where there are any: often neighbours are all on one level."""
    with builder.if_then(builder.icmp_unsigned("!=", members, ir.Constant(I32, 0))):
        _append_eights(builder, numbers, members, start, length)


def _append_eights(
    builder: Builder, numbers: Value, members: Value, start: Value, length: Value
) -> None:
    """Append the members 8 at a time, by a table of the set bits of a byte."""
    table, count = _table(builder), load(builder, I64, length)
    for eight in range(0, 2 * LANES, _AT_ONCE):
        byte = builder.trunc(builder.lshr(members, ir.Constant(I32, eight)), _I8)
        row = builder.shl(builder.zext(byte, I64), ir.Constant(I64, 3))
        places = load(builder, ir.VectorType(_I8, _AT_ONCE), builder.add(table, row), align=8)
        moved = builder.add(numbers, ir.Constant(numbers.type, [eight] * _AT_ONCE))
        chosen = builder.add(builder.zext(places, numbers.type), moved)
        _store_halves(builder, chosen, _end(builder, start, count))
        count = builder.add(count, builder.zext(builder.ctpop(byte), I64))
    store(builder, count, length)


def _end(builder: Builder, start: Value, count: Value) -> Value:
    return builder.add(start, builder.shl(count, ir.Constant(I64, 1)))


def _table(builder: Builder) -> Value:
    """Return the address of a constant [256, 8]: the places of a byte's set bits, and zeros."""
    places = [[k for k in range(8) if byte >> k & 1] for byte in range(256)]
    filled = [(of_byte + 8 * [0])[:8] for of_byte in places]
    kind = ir.ArrayType(_I8, 8 * 256)
    constant = ir.Constant(kind, [place for row in filled for place in row])
    table = cgutils.global_constant(builder, "places_of_set_bits", constant)
    table.align = 8
    return builder.ptrtoint(table, I64)


def _numbers(builder: Builder, first: Value, count: int) -> Value:
    """Make ``first``, or with 32 of them ``first``, ``first`` + 1, ..., as integers of 16 bits."""
    same = wide_splat(builder, builder.trunc(first, _I16), count)
    return builder.add(same, ir.Constant(same.type, list(range(count)))) if COMPRESSES else same


def _above(builder: Builder, x: Value, thresholds: Value, level: int) -> Value:
    """Pack into a word which of 32 floats lie above a threshold."""
    limit = builder.extract_value(thresholds, level)
    halves = [builder.extract_value(x, half) for half in range(2)]
    return word(builder, [builder.fcmp_ordered(">", half, limit) for half in halves])


def _compressed(builder: Builder, numbers: Value, members: Value) -> Value:
    """Move the members among 32 integers, whose bit is set, next to each other: ``vpcompressw``."""
    chosen = builder.bitcast(members, ir.VectorType(ir.IntType(1), 2 * LANES))
    operands = [numbers, ir.Constant(_HALVES, None), chosen]
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_HALVES, [a.type for a in operands]),
        "llvm.x86.avx512.mask.compress.v32i16",
    )
    return builder.call(function, operands)


def _store_halves(builder: Builder, vector: Value, address: Value) -> None:
    builder.store(vector, builder.inttoptr(address, vector.type.as_pointer())).align = 2


@emits
def fill_up(builder: Builder, address: Address, number: Int64) -> None:
    """Write a 16-bit integer 8 times to an address."""
    kind = ir.VectorType(_I16, 8)
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, builder.trunc(number, _I16), ir.Constant(I32, 0))
    same = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(I32, 8), [0] * 8))
    _store_halves(builder, same, address)
