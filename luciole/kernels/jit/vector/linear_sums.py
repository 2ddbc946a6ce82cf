"""Sums of two bytes times a factor each, 64 at a time."""

from __future__ import annotations

from luciole.kernels.jit.emits import Address, Builder, Literal, Value, emits
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bytes import in_all
from luciole.kernels.jit.vector.conversions import Kind
from luciole.kernels.jit.vector.fixed_point import ByteLimits, Limits, in_order, packed
from luciole.kernels.jit.vector.short_pairs import pair_in_all, pair_products, widened_pairs
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    I32,
    LANES,
    gather,
    load,
    pointer,
    splat,
    store,
)

LOWER_BITS = 9
"""Bits of the lower products that are cut off."""

UPPER_BITS = 16 - LOWER_BITS
"""Bits by which the upper products are shifted up to them."""


class LinearSum(ByteLimits):
    """Both factors as their upper and their lower 16 bits, each pair in an int32; what is added to
    the sum of products, half of a step (which ``start`` has in it where no sum is halfway), and
    the bits behind the point of a step.
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
    for k in range(4):
        pairs = _pairs(builder, x, y, LANES * k, kind)
        above = builder.shl(pair_products(builder, pairs, upper), in_all(UPPER_BITS))
        below = builder.ashr(pair_products(builder, pairs, lower), in_all(LOWER_BITS))
        total = builder.add(builder.add(above, below), start)
        if tied:
            total = builder.add(total, builder.ashr(total, in_all(31)))
        steps.append(builder.ashr(builder.add(total, half) if tied else total, bits))
    found = packed(builder, gather(builder, steps), 4, Limits(builder, constants))[0]
    store(builder, in_order(builder, found), to, align=1)


def _pairs(builder: Builder, x: Value, y: Value, offset: int, kind: int) -> Value:
    """Load 16 bytes from each of two addresses as pairs of int16."""
    loaded = [load(builder, BYTES, place, offset, align=1) for place in (x, y)]
    return widened_pairs(builder, *loaded, signed=kind == Kind.INT8)


def _field(builder: Builder, address: Value, name: str) -> Value:
    """Load a constant that nobody writes to, so that loops read it once."""
    number = builder.load(pointer(builder, address, I64, LinearSum.offset(name)))
    number.set_metadata("invariant.load", builder.module.add_metadata([]))
    return number
