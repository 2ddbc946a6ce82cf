"""Compiled kernels between floats and integers: plain loops, which LLVM turns into vector code, and
vectors where that is not enough.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.elements import strided
from luciole.kernels.jit import floats
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.conversions import Kind, integers_at, numbers_at
from luciole.kernels.jit.vector.rounding import DOUBT, Grid64, quantize_32, quantize_64

KINDS = {
    TensorType.INT8: Kind.INT8,
    TensorType.UINT8: Kind.UINT8,
    TensorType.INT16: Kind.INT16,
    TensorType.INT32: Kind.INT32,
}
"""Integers that kernels know."""

LONG = int(Kind.INT64)

WIDE = 64
"""Floats that become bytes at a time."""

SHORT, SHORTS = int(Kind.INT16), 32
"""Kind of integers of 16 bits, and how many of them are made at once."""

BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))
"""Number that is added before a fraction is cut off: with it sums below a half are not rounded up
to one.
"""


class FloatsRecord(Shared):
    """Elements of a result and an operand, and the grid of the integers."""

    y: int
    x: int
    scale: float
    zero: int


class IntegersRecord(FloatsRecord):
    """The limits of a result, and where the kernel has one the constants of 64 at a time."""

    low: int
    high: int
    constants: int


def to_floats(kind: Kind, x: Array, y: Array, scale: float = 1, zero_point: int = 0) -> NativeStep:
    """Make the step of y = scale (x - zero point)."""
    to, source = reach(y, 4 * x.size), reach(x, kind.size * x.size)
    record = FloatsRecord(begin=0, end=x.size, y=to, x=source, scale=scale, zero=zero_point)
    return strided.step(_to_floats(int(kind)), record, x.size)


def to_nearest(kind: Kind, x: Array, y: Array, scale: float, zero_point: int) -> NativeStep:
    """Make the step of y = round(x / scale) + zero point, halves away from zero, saturated; the
    lowest for NaN.

    y has at most 16 bits.
    """
    constants = _for_64(y, scale, zero_point)
    kernel = _to_nearest(int(kind), int(constants is not None))
    return _from_floats(kernel, kind, x, y, scale, zero_point, constants)


def _for_64(y: Array, scale: float, zero_point: int) -> Grid64 | None:
    """Return the constants of ``jit.rounding.quantize_64``; None where its rounding is not certain
    to be right.

    A product with the reciprocal of a power of two is right, but for halves.
    """
    limits = np.iinfo(y.dtype)
    within = limits.min <= zero_point <= limits.max and 2.0**-100 < scale < 2.0**100
    if y.itemsize > 1 or not within:
        return None
    half = np.float32(0.5)
    is_power = np.frexp(scale)[0] == half
    trusted = np.nextafter(half, np.float32(0)) if is_power else half - np.float32(DOUBT)
    turned = 128 + int(limits.min)
    return Grid64(
        scale=scale,
        inverse=float(1 / np.float32(scale)),
        trusted=float(trusted),
        zero_point=zero_point - turned,
        low=int(limits.min) - turned,
        high=int(limits.max) - turned,
        turned=turned,
    )


def toward_zero(kind: Kind, x: Array, y: Array) -> NativeStep:
    """Make the step of y = x without its fraction, saturated; the largest for NaN."""
    return _from_floats(_toward_zero(int(kind)), kind, x, y, 1, 0)


def _from_floats(
    kernel: jit.Kernel,
    kind: Kind,
    x: Array,
    y: Array,
    scale: float,
    zero_point: int,
    constants: Grid64 | None = None,
) -> NativeStep:
    limits, memory = np.iinfo(y.dtype), Memory()
    record = IntegersRecord(
        begin=0,
        end=x.size,
        y=reach(y, kind.size * x.size),
        x=reach(x, 4 * x.size),
        scale=scale,
        zero=zero_point,
        low=int(limits.min),
        high=int(limits.max),
        constants=0 if constants is None else memory.record(constants),
    )
    return strided.step(kernel, record, x.size, memory)


@cache
def _to_floats(kind: int) -> jit.Kernel:
    """Make the kernel of ``to_floats``."""

    @jit.kernel
    def to_float(r: FloatsRecord) -> None:
        y, x = floats(r.y), integers_at(r.x, kind)
        scale, zero_point = r.scale, np.float32(r.zero)
        for k in range(r.begin, r.end):
            y[k] = (np.float32(x[k]) - zero_point) * scale

    return to_float


@cache
def _to_nearest(kind: int, wide: int) -> jit.Kernel:
    """Make the kernel of ``to_nearest``; where ``wide`` is 1, there are constants for 64 at a
    time.
    """

    @jit.kernel
    def to_nearest_integer(r: IntegersRecord) -> None:
        y, x = integers_at(r.y, kind), floats(r.x)
        scale, zero_point = r.scale, np.int32(r.zero)
        least, most = np.float32(r.low - r.zero), np.float32(r.high - r.zero)
        half = np.float32(BELOW_HALF)
        first = r.begin
        if wide:
            for _ in range((r.end - first) // WIDE):
                quantize_64(r.y + first, r.x + 4 * first, r.constants)
                first += WIDE
        if kind == SHORT:
            for _ in range((r.end - first) // SHORTS):
                to, source = r.y + 2 * first, r.x + 4 * first
                quantize_32(to, source, scale, r.zero, least, most, half)
                first += SHORTS
        for k in range(first, r.end):
            steps = x[k] / scale
            steps += half if steps > 0 else -half
            steps = steps if steps > least else least  # and where it is NaN
            steps = steps if steps < most else most
            y[k] = np.int32(zero_point + np.int32(steps))

    return to_nearest_integer


class MovedRecord(Shared):
    """Elements of a result and an operand."""

    y: int
    x: int


def to_integers(kind: Kind, to: Kind, x: Array, y: Array, are_truths: bool) -> NativeStep:
    """Make the step of y = x, wrapped, or whether x is not 0."""
    places = {"y": reach(y, to.size * x.size), "x": reach(x, kind.size * x.size)}
    record = MovedRecord(begin=0, end=x.size, **places)
    return strided.step(_to_integers(int(kind), int(to), int(are_truths)), record, x.size)


@cache
def _to_integers(kind: int, to: int, are_truths: int) -> jit.Kernel:
    """Make the kernel of ``to_integers``."""

    @jit.kernel
    def moved_integers(r: MovedRecord) -> None:
        y, x = integers_at(r.y, to), numbers_at(r.x, kind)
        for k in range(r.begin, r.end):
            y[k] = x[k] != 0 if are_truths else x[k]

    return moved_integers


@cache
def _toward_zero(kind: int) -> jit.Kernel:
    """Make the kernel of ``toward_zero``."""
    if kind == Kind.INT64:
        return _toward_zero_long()

    @jit.kernel
    def toward_zero_integer(r: IntegersRecord) -> None:
        y, x = integers_at(r.y, kind), floats(r.x)
        low, high = np.int32(r.low), np.int32(r.high)
        least, most = np.float32(r.low), np.float32(r.high + 1)
        for k in range(r.begin, r.end):
            number = x[k]
            fits = number >= least and number < most
            beyond = low if number < least else high
            y[k] = np.int32(number if fits else np.float32(0)) if fits else beyond

    return toward_zero_integer


@cache
def _toward_zero_long() -> jit.Kernel:
    """Make the kernel of ``toward_zero`` for INT64, whose largest number is 2^63 as a float."""

    @jit.kernel
    def toward_zero_long(r: IntegersRecord) -> None:
        y, x = integers_at(r.y, LONG), floats(r.x)
        least, most = np.float32(r.low), np.float32(r.high)
        for k in range(r.begin, r.end):
            number = x[k]
            fits = number >= least and number < most
            beyond = r.low if number < least else r.high
            y[k] = np.int64(number if fits else np.float32(0)) if fits else beyond

    return toward_zero_long
