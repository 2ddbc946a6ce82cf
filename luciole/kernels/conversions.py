"""Compiled kernels between floats and integers: plain loops, which LLVM turns into vector code."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.kernels import jit, loops
from luciole.kernels.jit import Record, elementwise, floats
from luciole.kernels.jit.conversions import Kind, integers_at
from luciole.kernels.maps import bits
from luciole.kernels.registry import NativeStep

KINDS = {
    TensorType.INT8: Kind.INT8,
    TensorType.UINT8: Kind.UINT8,
    TensorType.INT16: Kind.INT16,
    TensorType.INT32: Kind.INT32,
}
"""Integers that kernels know."""

STEPS = 2.0**20
"""A size that lies far beyond 16 bits, and below which a float still has a half."""


def to_floats(kind: Kind, x: Array, y: Array, scale: float = 1, zero_point: int = 0) -> NativeStep:
    """y = scale (x - zero point)."""
    record = [y.ctypes.data, x.ctypes.data, 0, x.size, bits(scale), zero_point]
    return loops.step(_to_floats(int(kind)), record, 2, x.size)


def to_nearest(kind: Kind, x: Array, y: Array, scale: float, zero_point: int) -> NativeStep:
    """y = round(x / scale) + zero point, halves away from zero, saturated; the lowest for NaN.

    y has at most 16 bits.
    """
    return _from_floats(_to_nearest(int(kind)), x, y, scale, zero_point)


def toward_zero(kind: Kind, x: Array, y: Array) -> NativeStep:
    """y = x without its fraction, saturated; the largest for NaN."""
    return _from_floats(_toward_zero(int(kind)), x, y, 1, 0)


def _from_floats(
    kernel: jit.Kernel, x: Array, y: Array, scale: float, zero_point: int
) -> NativeStep:
    limits = np.iinfo(y.dtype)
    places = [y.ctypes.data, x.ctypes.data, 0, x.size]
    record = [*places, bits(scale), zero_point, limits.min, limits.max]
    return loops.step(kernel, record, 2, x.size)


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
def _to_nearest(kind: int) -> jit.Kernel:
    """Record: result, operand, elements from and to, scale, zero point, limits."""

    @jit.kernel
    def to_nearest_integer(r: Record) -> None:
        y, x = integers_at(r[0], kind), floats(r[1])
        scale, zero_point = elementwise.number(r[4]), np.int32(r[5])
        low, high, most = np.int32(r[6]), np.int32(r[7]), np.float32(STEPS)
        for k in range(r[2], r[3]):
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
