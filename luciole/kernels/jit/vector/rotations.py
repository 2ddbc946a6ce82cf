"""Pairs of floats turned by angles whose sine and cosine are given: 16 at once, each operation
rounded as NumPy's.
"""

from __future__ import annotations

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits
from luciole.kernels.jit.vector import masked
from luciole.kernels.jit.vector.vectors import FLOATS, LANES, wide_shuffle

_NOTHING = ir.Constant(FLOATS, None)
_PARTNERS = [lane ^ 1 for lane in range(LANES)]


@emits
def turn_halves(
    builder: Builder, y: Address, x: Address, sin: Address, cos: Address, half: Int64, lanes: Int64
) -> None:
    """Turn the first ``lanes`` pairs of floats that stand ``half`` bytes apart, and so do the sines
    and cosines that both have.
    """
    inside = masked.lanes_before(builder, lanes, 0)

    def both(address: Value) -> tuple[Value, Value]:
        second = builder.add(address, half)
        return _load(builder, address, inside), _load(builder, second, inside)

    (a, b), (sin_a, sin_b), (cos_a, cos_b) = both(x), both(sin), both(cos)
    first = builder.fsub(builder.fmul(a, cos_a), builder.fmul(b, sin_a))
    second = builder.fadd(builder.fmul(a, sin_b), builder.fmul(b, cos_b))
    masked.store_first(builder, first, y, 0, inside)
    masked.store_first(builder, second, builder.add(y, half), 0, inside)


@emits
def turn_neighbours(
    builder: Builder, y: Address, x: Address, sin: Address, cos: Address, lanes: Int64
) -> None:
    """Turn the pairs of neighbours among the first ``lanes`` floats."""
    inside = masked.lanes_before(builder, lanes, 0)
    numbers, sines, cosines = (_load(builder, place, inside) for place in (x, sin, cos))
    partners = wide_shuffle(builder, numbers, numbers, _PARTNERS)
    moved = builder.fmul(partners, sines)
    signs = ir.Constant(FLOATS, [-1.0, 1.0] * (LANES // 2))
    turned = builder.fadd(builder.fmul(numbers, cosines), builder.fmul(moved, signs))
    masked.store_first(builder, turned, y, 0, inside)


def _load(builder: Builder, address: Value, inside: Value) -> Value:
    return masked.load_first(builder, address, 0, inside, _NOTHING)
