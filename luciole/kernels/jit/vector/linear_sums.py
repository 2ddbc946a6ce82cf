"""Sums of two bytes times a factor each, 64 at a time."""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Literal, Value, emits
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bytes import MANY, in_all
from luciole.kernels.jit.vector.conversions import Kind
from luciole.kernels.jit.vector.fixed_point import ByteLimits, Limits, packed
from luciole.kernels.jit.vector.short_pairs import pair_in_all, pair_products
from luciole.kernels.jit.vector.vectors import (
    I32,
    LANES,
    SHORT_PAIRS,
    gather,
    load,
    pointer,
    splat,
    store,
    wide_shuffle,
)

LOWER_BITS = 8
"""Bits of the lower one of a factor's two parts."""


class LinearSum(ByteLimits):
    """Factors of bytes raised so that they have no sign: their upper parts and their lower
    ``LOWER_BITS``, each pair in an int32; what is added to the sum of products, half of a step
    (which ``start`` has in it where halves go up), and the bits behind the point of a step.
    """

    upper: int
    lower: int
    start: int
    half: int
    bits: int


@emits
def linear_sum_64(
    builder: Builder,
    to: Address,
    x: Address,
    y: Address,
    constants: Address,
    kind: Literal,
    tied: Literal,
) -> None:
    """Write the sums of 64 bytes of a kind and 64 others, each times a factor, as steps of the
    result: halves away from zero where ``tied`` is 1, else up. ``constants`` is the address of a
    ``LinearSum``.
    """
    upper, lower = (
        pair_in_all(builder, _field(builder, constants, name)) for name in ("upper", "lower")
    )
    start, half, bits = (
        splat(builder, builder.trunc(_field(builder, constants, name), I32))
        for name in ("start", "half", "bits")
    )
    steps = []
    for pairs in _pairs(builder, x, y, kind):
        total = pair_products(builder, pairs, upper)
        total = builder.shl(total, in_all(LOWER_BITS))
        total = builder.add(total, builder.add(pair_products(builder, pairs, lower), start))
        if tied:
            total = builder.add(total, builder.ashr(total, in_all(31)))
        steps.append(builder.ashr(builder.add(total, half) if tied else total, bits))
    results = packed(builder, gather(builder, steps), 4, Limits(builder, constants))[0]
    store(builder, results, to, align=1)


def _pairs(builder: Builder, x: Value, y: Value, kind: int) -> Iterator[Value]:
    """Load 64 bytes from each of two addresses as pairs of int16, raised so that they have no sign,
    in the order of ``packed``.
    """
    none = ir.Constant(MANY, None)
    some = [load(builder, MANY, place, align=1) for place in (x, y)]
    if kind == Kind.INT8:
        some = [builder.xor(one, ir.Constant(MANY, [0x80] * MANY.count)) for one in some]
    for both in _zipped(builder, *some):
        for pairs in _zipped(builder, both, none):
            yield builder.bitcast(pairs, SHORT_PAIRS)


def _zipped(builder: Builder, x: Value, y: Value) -> list[Value]:
    """Interleave the bytes of each 128 bits of two vectors: the lower 64, and the upper ones."""
    halves = []
    for half in (0, LANES // 2):
        lanes = (LANES * (k // LANES) + half + k % LANES // 2 for k in range(MANY.count))
        order = [lane + MANY.count * (k % 2) for k, lane in enumerate(lanes)]
        halves.append(wide_shuffle(builder, x, y, order))
    return halves


def _field(builder: Builder, address: Value, name: str) -> Value:
    """Load a constant that nobody writes to, so that loops read it once."""
    number = builder.load(pointer(builder, address, I64, LinearSum.offset(name)))
    number.set_metadata("invariant.load", builder.module.add_metadata([]))
    return number
