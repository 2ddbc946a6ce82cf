"""Floats in vector registers as integers on an affine grid: exactly the quotients that are asked
for, and those that become bytes seldom divided.

A product with the reciprocal is taken where its distance from the next tie tells that it is rounded
as the quotient would be: the rounding test of Ziv (Fast Evaluation of Elementary Mathematical
Functions with Correctly Rounded Last Bit, 1991).
"""

from __future__ import annotations

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Float32, Int64, Value, emits
from luciole.kernels.jit.vector.fixed_point import ByteLimits, Limits, in_order, packed, shorts
from luciole.kernels.jit.vector.results import between
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    I32,
    INTS,
    LANES,
    gather,
    load,
    of_llvm,
    splat,
    store,
)

MOST_STEPS = 1024.0
"""Number of steps that are cut off whatever the zero point."""

DOUBT = 2.0**-12
"""Quotients below ``MOST_STEPS`` by way of the reciprocal are closer than this to the right ones:
its error is 2^-24 of a number, and so are those of the product and of the quotient.
"""


class Grid64(ByteLimits):
    """The scale of a grid, its reciprocal, and how far a product with it may lie from an integer to
    be trusted.
    """

    scale: float
    inverse: float
    trusted: float


@emits
def quantize_64(builder: Builder, to: Address, x: Address, constants: Address) -> None:
    """Write 64 floats as bytes: x / scale to the nearest integer, halves away from zero, the lowest
    for NaN. ``constants`` is the address of a ``Grid64``.
    """
    scale, inverse, trusted = (
        splat(builder, load(builder, F32, constants, Grid64.offset(name)))
        for name in ("scale", "inverse", "trusted")
    )
    numbers = [load(builder, FLOATS, x, 4 * LANES * k) for k in range(4)]
    guesses = [_guess(builder, vector, inverse, trusted) for vector in numbers]
    doubts = guesses[0][1]
    for _, doubt in guesses[1:]:
        doubts = builder.or_(doubts, doubt)
    some = builder.bitcast(doubts, ir.IntType(LANES))
    begin = builder.block
    with builder.if_then(
        builder.icmp_unsigned("!=", some, ir.Constant(some.type, 0)), likely=False
    ):
        exact = [_exact(builder, vector, scale) for vector in numbers]
        divided = builder.block
    steps = []
    for (guess, _), number in zip(guesses, exact, strict=True):
        steps.append(builder.phi(INTS))
        steps[-1].add_incoming(guess, begin)
        steps[-1].add_incoming(number, divided)
    limits = Limits(builder, constants)
    results = in_order(builder, packed(builder, gather(builder, steps), 4, limits)[0])
    store(builder, results, to, align=1)


@emits
def quantize_32(
    builder: Builder,
    to: Address,
    x: Address,
    scale: Float32,
    zero_point: Int64,
    least: Float32,
    most: Float32,
    half: Float32,
) -> None:
    """Write 32 floats as int16: x / scale plus ``half``, away from 0 and without its fraction, cut
    off at both limits (the lower one for NaN), plus the zero point.
    """
    scale, least, most, half = (splat(builder, n) for n in (scale, least, most, half))
    zero = splat(builder, builder.trunc(zero_point, I32))
    halves = []
    for k in range(2):
        steps = builder.fdiv(load(builder, FLOATS, x, 4 * LANES * k), scale)
        away = of_llvm(builder, "llvm.copysign.v16f32", half, steps)
        steps = builder.fadd(steps, away)
        steps = builder.select(builder.fcmp_ordered(">", steps, least), steps, least)
        steps = builder.select(builder.fcmp_ordered("<", steps, most), steps, most)
        halves.append(builder.add(builder.fptosi(steps, INTS), zero))
    lower, upper = halves
    store(builder, shorts(builder, lower, upper), to, align=1)


def _guess(builder: Builder, x: Value, inverse: Value, trusted: Value) -> tuple[Value, Value]:
    """Round x / scale by way of the reciprocal, and find the lanes where that is not certain."""
    steps = between(builder, builder.fmul(x, inverse), _all(-MOST_STEPS), _all(MOST_STEPS))
    whole = of_llvm(builder, "llvm.rint.v16f32", steps)
    rest = of_llvm(builder, "llvm.fabs.v16f32", builder.fsub(steps, whole))
    return builder.fptosi(whole, INTS), builder.fcmp_unordered(">", rest, trusted)


def _exact(builder: Builder, x: Value, scale: Value) -> Value:
    """Divide and round x / scale to the nearest integer, halves away from zero."""
    steps = builder.fdiv(x, scale)
    size = of_llvm(builder, "llvm.fabs.v16f32", steps)
    size = builder.select(builder.fcmp_ordered("<", size, _all(MOST_STEPS)), size, _all(MOST_STEPS))
    whole = of_llvm(builder, "llvm.trunc.v16f32", size)
    rounds_up = builder.fcmp_ordered(">=", builder.fsub(size, whole), _all(0.5))
    whole_steps = builder.fadd(whole, builder.select(rounds_up, _all(1.0), _all(0.0)))
    negative = builder.fcmp_unordered("<", steps, _all(0.0))
    return builder.fptosi(builder.select(negative, builder.fneg(whole_steps), whole_steps), INTS)


def _all(number: float) -> Value:
    return ir.Constant(FLOATS, [number] * LANES)
