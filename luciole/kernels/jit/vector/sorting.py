"""Floats in vector registers sorted by level: lists of their numbers."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.quantizing import WordFloats, word
from luciole.kernels.jit.vector.vectors import I32, LANES, Vectors, load, store

_I16 = ir.IntType(16)
_HALVES = ir.VectorType(_I16, 2 * LANES)


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
    Needs AVX-512 VBMI2.
    """
    levels = thresholds.kind.count + 1
    numbers = _numbers(builder, first)
    mask = builder.trunc(mask, I32)
    words = [_above(builder, x, thresholds.value, level) for level in range(levels - 1)]
    for level in range(levels):
        members = mask if level == 0 else builder.and_(mask, words[level - 1])
        if level < levels - 1:
            members = builder.and_(members, builder.not_(words[level]))
        place = builder.add(counts, ir.Constant(I64, 8 * level))
        count = load(builder, I64, place)
        end = builder.add(lists, builder.mul(stride, ir.Constant(I64, level)))
        end = builder.add(end, builder.shl(count, ir.Constant(I64, 1)))
        _store_halves(builder, _compressed(builder, numbers, members), end)
        more = builder.zext(builder.ctpop(members), I64)
        store(builder, builder.add(count, more), place)


def _numbers(builder: Builder, first: Value) -> Value:
    """Make ``first``, ``first`` + 1, ... as 32 integers of 16 bits."""
    count = 2 * LANES
    empty = ir.Constant(_HALVES, ir.Undefined)
    one = builder.insert_element(empty, builder.trunc(first, _I16), ir.Constant(I32, 0))
    same = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(I32, count), [0] * count))
    return builder.add(same, ir.Constant(_HALVES, list(range(count))))


def _above(builder: Builder, x: Value, thresholds: Value, level: int) -> Value:
    """Pack into a word which of 32 floats lie above a threshold."""
    limit = builder.extract_value(thresholds, level)
    halves = [builder.extract_value(x, half) for half in range(2)]
    return word(builder, [builder.fcmp_ordered(">", half, limit) for half in halves])


def _compressed(builder: Builder, numbers: Value, members: Value) -> Value:
    """Move those of 32 integers whose bit is set next to each other: ``vpcompressw``."""
    chosen = builder.bitcast(members, ir.VectorType(ir.IntType(1), 2 * LANES))
    given = [numbers, ir.Constant(_HALVES, None), chosen]
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_HALVES, [a.type for a in given]),
        "llvm.x86.avx512.mask.compress.v32i16",
    )
    return builder.call(function, given)


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
