"""Compiled kernels between floats and integers: plain loops, which LLVM turns into vector code."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.kernels import jit, loops
from luciole.kernels.jit import Record, elementwise, floats
from luciole.kernels.jit.conversions import Kind, integers_at
from luciole.kernels.jit.rounding import DOUBT, quantize_64
from luciole.kernels.maps import bits
from luciole.kernels.memory import Memory, reach
from luciole.kernels.registry import NativeStep

KINDS = {
    TensorType.INT8: Kind.INT8,
    TensorType.UINT8: Kind.UINT8,
    TensorType.INT16: Kind.INT16,
    TensorType.INT32: Kind.INT32,
}
"""Integers that kernels know."""

WIDE = 64
"""Floats that become bytes at a time."""

STEPS = 2.0**20
"""A size that lies far beyond 16 bits, and below which a float still has a half."""


def to_floats(kind: Kind, x: Array, y: Array, scale: float = 1, zero_point: int = 0) -> NativeStep:
    """y = scale (x - zero point)."""
    places = reach(y, 4 * x.size), reach(x, kind.size * x.size)
    record = [*places, 0, x.size, bits(scale), zero_point]
    return loops.step(_to_floats(int(kind)), record, 2, x.size)


def to_nearest(kind: Kind, x: Array, y: Array, scale: float, zero_point: int) -> NativeStep:
    """y = round(x / scale) + zero point, halves away from zero, saturated; the lowest for NaN.

    y has at most 16 bits.
    """
    table = _for_64(y, scale, zero_point)
    kernel = _to_nearest(int(kind), int(table is not None))
    return _from_floats(kernel, kind, x, y, scale, zero_point, table)


NUMBERS_FOR_64 = 7
"""What ``jit.rounding.quantize_64`` reads."""


def _for_64(y: Array, scale: float, zero_point: int) -> Array | None:
    """What ``jit.rounding.quantize_64`` reads; None where its rounding is not certain to be right.

    A product with the reciprocal of a power of two is right, but for halves.
    """
    limits = np.iinfo(y.dtype)
    within = limits.min <= zero_point <= limits.max and 2.0**-100 < scale < 2.0**100
    if y.itemsize > 1 or not within:
        return None
    half = np.float32(0.5)
    is_power = np.frexp(scale)[0] == half
    trusted = np.nextafter(half, np.float32(0)) if is_power else half - np.float32(DOUBT)
    turned = 128 + limits.min
    numbers = [bits(number) for number in (scale, float(1 / np.float32(scale)), float(trusted))]
    numbers += [n - turned for n in (zero_point, limits.min, limits.max)]
    return np.array([*numbers, turned], np.int64)


def toward_zero(kind: Kind, x: Array, y: Array) -> NativeStep:
    """y = x without its fraction, saturated; the largest for NaN."""
    return _from_floats(_toward_zero(int(kind)), kind, x, y, 1, 0)


def _from_floats(
    kernel: jit.Kernel,
    kind: Kind,
    x: Array,
    y: Array,
    scale: float,
    zero_point: int,
    table: Array | None = None,
) -> NativeStep:
    limits, memory = np.iinfo(y.dtype), Memory()
    places = reach(y, kind.size * x.size), reach(x, 4 * x.size)
    record = [*places, 0, x.size, bits(scale), zero_point, int(limits.min), int(limits.max)]
    if table is not None:
        record.append(memory.keep(table, NUMBERS_FOR_64))
    return loops.step(kernel, record, 2, x.size, memory)


@cache
def _to_floats(kind: int) -> jit.Kernel:
    """Record: result, operand, elements from and to, scale, zero point."""

    @jit.kernel
    def to_float(r: Record) -> None:
        y, x = floats(r[0]), integers_at(r[1], kind)
        scale, zero_point = elementwise.number(r[4]), np.float32(r[5])
        for k in range(r[2], r[3]):
            y[k] = (np.float32(x[k]) - zero_point) * scale

    return to_float


@cache
def _to_nearest(kind: int, wide: int) -> jit.Kernel:
    """Record: result, operand, elements from and to, scale, zero point, limits; where ``wide`` is
    1, the address of constants for 64 at a time.
    """

    @jit.kernel
    def to_nearest_integer(r: Record) -> None:
        y, x = integers_at(r[0], kind), floats(r[1])
        scale, zero_point = elementwise.number(r[4]), np.int32(r[5])
        low, high, most = np.int32(r[6]), np.int32(r[7]), np.float32(STEPS)
        first = r[2]
        if wide:
            for _ in range((r[3] - first) // WIDE):
                quantize_64(r[0] + first, r[1] + 4 * first, r[8])
                first += WIDE
        for k in range(first, r[3]):
            steps = x[k] / scale
            size = abs(steps)
            size = size if size < most else most
            whole = np.int32(size)
            whole += np.int32(size - np.float32(whole) >= np.float32(0.5))
            code = zero_point + (whole if steps > 0 else -whole)
            code = low if code < low or steps != steps else code
            y[k] = high if code > high else code

    return to_nearest_integer


@cache
def _toward_zero(kind: int) -> jit.Kernel:
    """Record: result, operand, elements from and to, unused, limits."""

    @jit.kernel
    def toward_zero_integer(r: Record) -> None:
        y, x = integers_at(r[0], kind), floats(r[1])
        low, high = np.int32(r[6]), np.int32(r[7])
        least, most = np.float32(r[6]), np.float32(r[7] + 1)
        for k in range(r[2], r[3]):
            number = x[k]
            fits = number >= least and number < most
            beyond = low if number < least else high
            y[k] = np.int32(number if fits else np.float32(0)) if fits else beyond

    return toward_zero_integer
