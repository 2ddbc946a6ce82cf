"""Means of four bytes, each times its share: up to 16 neighbouring channels of four pixels."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Float32, Form, Int64, Literal, Value, emits
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.vector.bytes import in_all
from luciole.kernels.jit.vector.short_pairs import pair_in_all, pair_products, widened_pairs
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    FLOATS,
    I32,
    INTS,
    LANES,
    load,
    splat,
    store,
    wide_shuffle,
)

I16 = ir.IntType(16)
HALF_SHORTS = ir.VectorType(I16, LANES)
"""16 int16."""


@emits
def mix_signed(
    builder: Builder,
    to: Address,
    above: Address,
    below: Address,
    right: Int64,
    down: Int64,
    this: Int64,
    next_: Int64,
    bits: Literal,
    count: Literal,
    read: Literal,
) -> None:
    """Write ``count`` (1 to 16) means of int8, whose shares are integers and sum up to 2^bits,
    halves away from zero.

    The four are at two addresses and ``right`` bytes behind each; ``read`` bytes are read from
    each place: as many, or some behind them that are not used. ``down`` has the shares of both rows
    as a pair of int16, ``this`` and ``next_`` are those of the columns.
    """
    rows, total = pair_in_all(builder, down), None
    for moved, share in ((None, this), (right, next_)):
        places = [p if moved is None else builder.add(p, moved) for p in (above, below)]
        pairs = widened_pairs(builder, *(_load(builder, p, read) for p in places), signed=True)
        factor = splat(builder, builder.trunc(share, I32))
        part = builder.mul(pair_products(builder, pairs, rows), factor)
        total = part if total is None else builder.add(total, part)
    rounding = builder.add(builder.ashr(total, in_all(31)), in_all(1 << (bits - 1)))
    steps = builder.ashr(builder.add(total, rounding), in_all(bits))
    _store(builder, _narrowed(builder, steps, signed=True), to, count)


@emits
def mix_unsigned(
    builder: Builder,
    to: Address,
    above: Address,
    below: Address,
    right: Int64,
    near: Float32,
    far: Float32,
    this: Float32,
    next_: Float32,
    count: Literal,
    read: Literal,
) -> None:
    """Write ``count`` (1 to 16) means of uint8, read like those of ``mix_signed``, whose shares are
    floats, halves up: products and sums are rounded one after the other, as TFLite's are.
    """
    total = None
    rows = [(above, splat(builder, near)), (below, splat(builder, far))]
    for moved, share in ((None, splat(builder, this)), (right, splat(builder, next_))):
        for start, row in rows:
            place = start if moved is None else builder.add(start, moved)
            number = builder.uitofp(_load(builder, place, read), FLOATS)
            part = builder.fmul(builder.fmul(number, row), share)
            total = part if total is None else builder.fadd(total, part)
    half = ir.Constant(FLOATS, [0.5] * LANES)
    steps = builder.fptosi(builder.fadd(total, half), INTS)
    _store(builder, _narrowed(builder, steps, signed=False), to, count)


def _load(builder: Builder, address: Value, count: int) -> Value:
    """Load the first bytes of a vector, whose others are not used."""
    if count == LANES:
        return load(builder, BYTES, address, align=1)
    whole = ir.Constant(ir.IntType(8 * LANES), 0)
    for first, size in _pieces(count):
        piece = load(builder, ir.IntType(8 * size), address, first, align=1)
        wide = builder.shl(builder.zext(piece, whole.type), ir.Constant(whole.type, 8 * first))
        whole = builder.or_(whole, wide)
    return builder.bitcast(whole, BYTES)


def _store(builder: Builder, value: Value, address: Value, count: int) -> None:
    """Write the first bytes of a vector."""
    if count == LANES:
        store(builder, value, address, align=1)
        return
    whole = builder.bitcast(value, ir.IntType(8 * LANES))
    for first, size in _pieces(count):
        piece = builder.lshr(whole, ir.Constant(whole.type, 8 * first))
        store(builder, builder.trunc(piece, ir.IntType(8 * size)), address, first, align=1)


def _pieces(count: int) -> list[tuple[int, int]]:
    """Cut ``count`` bytes into integers: the first byte of each, and its size."""
    pieces, first = [], 0
    for size in (8, 4, 2, 1):
        if count & size:
            pieces.append((first, size))
            first += size
    return pieces


def _narrowed(builder: Builder, steps: Value, *, signed: bool) -> Value:
    """Narrow int32 that fit into bytes."""
    if not has("avx2") or has("avx512f"):
        return builder.trunc(steps, BYTES)
    lower, upper = (
        wide_shuffle(builder, steps, steps, list(range(first, first + LANES // 2)))
        for first in (0, LANES // 2)
    )
    mixed = _called(builder, "avx2.packssdw", HALF_SHORTS, lower, upper)
    order = [(0, 2, 1, 3)[k // 4] * 4 + k % 4 for k in range(LANES)]
    shorts = wide_shuffle(builder, mixed, mixed, order)
    halves = [
        wide_shuffle(builder, shorts, shorts, list(range(first, first + LANES // 2)))
        for first in (0, LANES // 2)
    ]
    name = "packsswb" if signed else "packuswb"
    return _called(builder, f"sse2.{name}.128", BYTES, *halves)


def _called(builder: Builder, name: str, result: Form, a: Value, b: Value) -> Value:
    """Call one of the machine's own instructions."""
    kind = ir.FunctionType(result, [a.type, b.type])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}")
    return builder.call(function, [a, b])
