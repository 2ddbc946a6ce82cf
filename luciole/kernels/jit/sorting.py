"""Floats in vector registers sorted by level: lists of their numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.quantizing import WORD_FLOATS, word
from luciole.kernels.jit.scalars import I64, intrinsic, types
from luciole.kernels.jit.vectors import I32, LANES, load, store

_I16 = ir.IntType(16)
_HALVES = ir.VectorType(_I16, 2 * LANES)


@intrinsic
def sort_word(
    typing_context: Any,
    x: Any,
    thresholds: Any,
    first: Any,
    mask: Any,
    lists: Any,
    stride: Any,
    counts: Any,
) -> Any:
    """Append the numbers of 32 floats, ``first`` and up, to the lists of their levels: 16-bit
    integers, list l at ``lists + l stride`` with ``counts[l]`` (int64) of them so far.

    Bits of ``mask`` say which floats count. Up to 31 places behind a list's end are written to.
    Needs AVX-512 VBMI2.
    """
    levels = thresholds.count + 1

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, thresholds, first, mask, lists, stride, counts = args
        numbers = _numbers(builder, first)
        mask = builder.trunc(mask, I32)
        words = [_above(builder, x, thresholds, level) for level in range(levels - 1)]
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
        return context.get_dummy_value()

    given = (WORD_FLOATS, thresholds, *[types.int64] * 5)
    return types.void(*given), generate


def _numbers(builder: Any, first: Any) -> Any:
    """``first``, ``first`` + 1, ... as 32 integers of 16 bits."""
    count = 2 * LANES
    empty = ir.Constant(_HALVES, ir.Undefined)
    one = builder.insert_element(empty, builder.trunc(first, _I16), ir.Constant(I32, 0))
    same = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(I32, count), [0] * count))
    return builder.add(same, ir.Constant(_HALVES, list(range(count))))


def _above(builder: Any, x: Any, thresholds: Any, level: int) -> Any:
    """The word of which of 32 floats lie above a threshold."""
    limit = builder.extract_value(thresholds, level)
    halves = [builder.extract_value(x, half) for half in range(2)]
    return word(builder, [builder.fcmp_ordered(">", half, limit) for half in halves])


def _compressed(builder: Any, numbers: Any, members: Any) -> Any:
    """Those of 32 integers whose bit is set, next to each other."""
    chosen = builder.bitcast(members, ir.VectorType(ir.IntType(1), 2 * LANES))
    given = [numbers, ir.Constant(_HALVES, None), chosen]
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(_HALVES, [a.type for a in given]),
        "llvm.x86.avx512.mask.compress.v32i16",
    )
    return builder.call(function, given)


def _store_halves(builder: Any, vector: Any, address: Any) -> None:
    builder.store(vector, builder.inttoptr(address, vector.type.as_pointer())).align = 2


@intrinsic
def fill_up(typing_context: Any, address: Any, number: Any) -> Any:
    """Write a 16-bit integer 8 times to an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.VectorType(_I16, 8)
        empty = ir.Constant(kind, ir.Undefined)
        one = builder.insert_element(empty, builder.trunc(args[1], _I16), ir.Constant(I32, 0))
        same = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(I32, 8), [0] * 8))
        _store_halves(builder, same, args[0])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
