"""SOFTMAX and LOG_SOFTMAX kernels for quantized tensors: integers of 8 or 16 bits."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import (
    BITS,
    fixed_result,
    high_multiply,
    multiply,
    quantize_multiplier,
    rounding_divide,
)
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.softmax import Distribution, LogSoftmax, Softmax
from luciole.ir.quant import Grid
from luciole.ir.quantization import per_tensor
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.fixed_point.compiled import Factor, FactorRecord, Whole, by_factor, factor_at
from luciole.kernels.fixed_point.functions import exp, leading_zeros, log, reciprocal
from luciole.kernels.fixed_point.scalars import one_over_one_plus, times
from luciole.kernels.fixed_point.tables import STEPS, interpolated, pieces
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.integers import limits_of

SMALL = (TensorType.INT8, TensorType.UINT8)
INTEGER_BITS = 5
"""Those of differences before their exponential is taken: e^-32 is nothing."""

SUM_BITS = 12
"""Integer bits of a sum of exponentials."""

FINER: Grid = (2.0**-16, -(2**15))
"""Scale and zero point of results of 16 bits where logits have 8."""

LARGEST_SUM = 2**32 - 1
"""Of 8191 exponentials of 0."""

MOST_SHORTS = 2**16
"""Exponentials of 15 bits whose sum fits into int32."""

SHORT = int(Kind.INT16)


class Differences:
    """The factor that turns differences of stored integers into numbers with 5 integer bits, and
    the least difference that counts: where differences are so steep that the shift is 31, that is
    0.
    """

    def __init__(self, factor: float) -> None:
        steep = min(factor * 2.0 ** (BITS - INTEGER_BITS), 2.0**BITS - 1)
        self.multiplier, shift = quantize_multiplier(steep, BITS)
        self.shift = int(shift)
        units = (2**INTEGER_BITS - 1) << (BITS - INTEGER_BITS)
        self.least = -(units >> self.shift if self.shift >= 0 else units << -self.shift)

    def scaled(self, x: Array) -> Array:
        """Multiply differences, cut off at ``least``, by the factor."""
        return multiply(np.maximum(x, self.least), self.multiplier, self.shift).astype(np.int64)


def of_largest(x: Array) -> Array:
    """Subtract the largest integer of each row."""
    wide = x.astype(np.int64)
    return wide - wide.max(axis=-1, keepdims=True) if x.size else wide


@reference(Softmax, *SMALL)
def softmax(op: Softmax, x: Array) -> Array:
    """Compute exponentials and the reciprocal of their sum as fixed-point numbers."""
    scaling, below = differences(op), of_largest(x)
    powers, counts = exp(scaling.scaled(below)), below >= scaling.least
    parts = np.where(counts, rounding_divide(powers, SUM_BITS), 0).astype(np.int64)
    total = np.minimum(parts.sum(axis=-1, keepdims=True), LARGEST_SUM)
    share, over = reciprocal(total, SUM_BITS)
    limits = np.iinfo(NUMPY[op.infer_dtype()])
    quotients = rounding_divide(high_multiply(share, powers), over + BITS - limits.bits)
    shifted = np.where(counts, quotients.astype(np.int64) + limits.min, limits.min)
    return np.clip(shifted, limits.min, limits.max).astype(limits.dtype)


def powers_of_differences(op: Softmax) -> tuple[Array, Array]:
    """Tabulate for differences of 0, -1, ... -255, int32 [256], the exponentials and what each adds
    to a sum; both 0 where the difference does not count.
    """
    scaling, below = differences(op), -np.arange(256)
    counts = below >= scaling.least
    powers = np.where(counts, exp(scaling.scaled(below)), 0)
    return powers.astype(np.int32), rounding_divide(powers, SUM_BITS)


class SoftmaxRecord(Shared):
    """Rows of a result and an operand, n bytes each, and tables of differences: exponentials, and
    what they add to a sum.
    """

    y: int
    x: int
    n: int
    powers: int
    parts: int


@native(Softmax, *SMALL)
def build(op: Softmax, context: Context) -> Built:
    """Find the largest of each row, add up what a table has for the differences, then divide."""
    x, y = context.first, context.results[0]
    if y.itemsize != 1:
        return None
    tables = accepted(powers_of_differences, op)
    if isinstance(tables, Declined):
        return tables
    n, memory = x.shape[-1], Memory()
    rows = x.size // max(n, 1)
    to, source = (reach(t, n * rows) for t in (y, x))
    powers, parts = (memory.keep(table, 256) for table in tables)
    record = SoftmaxRecord(begin=0, end=rows, y=to, x=source, n=n, powers=powers, parts=parts)
    kernel = _kernel(int(KINDS[op.logits.dtype]))
    return strided.step(kernel, record, x.size, memory)


@cache
def _kernel(kind: int) -> jit.Kernel:
    """Make the kernel of SOFTMAX for bytes of a kind."""
    lowest, highest = (-128, 127) if kind == Kind.INT8 else (0, 255)
    words = int(Kind.INT32)

    @jit.kernel
    def quantized_softmax(r: SoftmaxRecord) -> None:
        powers, parts = integers_at(r.powers, words), integers_at(r.parts, words)
        n = r.n
        for row in range(r.begin, r.end):
            y, x = integers_at(r.y + n * row, kind), integers_at(r.x + n * row, kind)
            largest = np.int64(lowest)
            for k in range(n):
                largest = max(largest, np.int64(x[k]))
            total = 0
            for k in range(n):
                total += int(parts[largest - x[k]])
            total = min(total, LARGEST_SUM)
            bits = _bits_of(total)
            share = one_over_one_plus((total << (32 - bits)) - (1 << BITS))
            down = SUM_BITS - 32 + bits + BITS - 8
            half = np.int64(1) << (down - 1)
            for k in range(n):
                number = times(share, int(powers[largest - x[k]]))
                y[k] = min(((number + half) >> down) + lowest, highest)

    return quantized_softmax


@jit.inlined
def _bits_of(x: int) -> int:
    """Count the bits of a sum, which is at least 2^19: e^0 without 12 of its bits."""
    bits = 19
    while x >> bits:
        bits += 1
    return bits


@reads(Softmax, *SMALL)
def differences(op: Softmax) -> Differences:
    """Compute the factors of an operator's differences of logits. Raises LucioleError for a result
    that SOFTMAX does not give, and for a beta that is not positive.
    """
    scale, _ = _grids(op, FINER if op.infer_dtype() != op.logits.dtype else None)
    if not op.beta > 0:
        raise LucioleError(f"beta is {op.beta}; quantized tensors need one above 0")
    return Differences(float(np.float32(op.beta)) * float(scale))


@reads(LogSoftmax, *SMALL)
def _grids(op: Distribution, grid: Grid | None = None) -> tuple[np.float32, int]:
    """Return scale and zero point of the logits. Raises LucioleError for another result than the
    operator has, or than is wanted.
    """
    needed, needed_zero = grid or fixed_result(op, op.logits.dtype)
    to, to_zero = per_tensor(op.output, "the result")
    if abs(to - needed) > needed / 1000 or to_zero != needed_zero:
        present = f"scale {to} and zero point {to_zero}"
        raise LucioleError(f"the result has {present}; {needed} and {needed_zero} are needed")
    return per_tensor(op.logits, "logits")


@cache
def tables_16() -> tuple[Array, Array]:
    """Tabulate the exponentials of -10 to 0, and 1 / (1 + x) of 0 to 1, int16 [513] each."""
    span = np.float64(2**16 - 1)
    to = (2 / span, 0)
    powers = pieces(np.exp, (10 / span, 2**15 - 1), to)
    return powers, pieces(lambda v: 1 / (1 + v), (1 / span, -(2**15)), to)


@reads(Softmax, TensorType.INT16)
def factor_16(op: Softmax) -> Factor:
    """Return the factor from differences of logits to entries of the first table."""
    scale, zero_point = _grids(op)
    if zero_point:
        raise LucioleError(f"logits has zero point {zero_point}; 0 is needed for 16 bits")
    multiplier, shift = quantize_multiplier(float(scale * np.float32(op.beta)) / (10.0 / 65535.0))
    return int(multiplier), int(shift)


@reference(Softmax, TensorType.INT16)
def softmax_16(op: Softmax, x: Array) -> Array:
    """Look exponentials of -10 to 0 and the reciprocal of their sum, from 1 to 2, up in tables."""
    powers, inverses = tables_16()
    units = multiply(of_largest(x), *factor_16(op)).astype(np.int64) + 2**15 - 1
    power = interpolated(powers, np.clip(units, -(2**15), 2**15 - 1)).astype(np.int64)
    total = power.sum(axis=-1, keepdims=True)
    zeros = leading_zeros(total)
    fraction = (((total << (zeros - 1)) + (1 << 13)) >> 14) - (2**15 + 2**16)
    share = interpolated(inverses, np.clip(fraction, -(2**15), 2**15 - 1)).astype(np.int64)
    down = BITS - zeros
    quotients = (power * share + (1 << (down - 1))) >> down
    return np.asarray(np.clip(quotients, 0, 2**15 - 1), np.int16)


class ShortSoftmaxRecord(SoftmaxRecord):
    """The same of int16, with tables of exponentials and of inverses; and a factor of differences,
    see ``FactorRecord``.
    """

    factor: int


@native(Softmax, TensorType.INT16)
def build_16(op: Softmax, context: Context) -> Built:
    """Look up the powers and reciprocals of 16 bits in their tables."""
    x, y = context.first, context.results[0]
    factor, n, memory = accepted(factor_16, op), x.shape[-1], Memory()
    if isinstance(factor, Declined):
        return factor
    if not 0 < n <= MOST_SHORTS or factor[0] < 0:
        return Declined("rows are too long, or beta is negative")
    rows = x.size // n
    powers, inverses = (memory.keep(table, STEPS + 1) for table in tables_16())
    record = ShortSoftmaxRecord(
        begin=0,
        end=rows,
        y=reach(y, 2 * n * rows),
        x=reach(x, 2 * n * rows),
        n=n,
        powers=powers,
        parts=inverses,
        factor=memory.record(FactorRecord.of(factor)),
    )
    return strided.step(short_softmax, record, x.size, memory)


@jit.kernel
def short_softmax(r: ShortSoftmaxRecord) -> None:
    """Look up what ``softmax_16`` does; a row's exponentials wait in its result."""
    factor, n = factor_at(r.factor, 0), r.n
    for row in range(r.begin, r.end):
        y, x = integers_at(r.y + 2 * n * row, SHORT), integers_at(r.x + 2 * n * row, SHORT)
        largest = np.int64(-32768)
        for k in range(n):
            largest = max(largest, np.int64(x[k]))
        total = 0
        for k in range(n):
            units = by_factor(x[k] - largest, factor) + 32767
            power = _looked_up(r.powers, max(min(units, 32767), -32768))
            y[k] = power
            total += power
        bits = 0
        while total >> bits:
            bits += 1
        fraction = (((total << (31 - bits)) + (1 << 13)) >> 14) - (2**15 + 2**16)
        share = _looked_up(r.parts, max(min(fraction, 32767), -32768))
        down = BITS - 32 + bits
        for k in range(n):
            quotient = (int(y[k]) * share + (np.int64(1) << (down - 1))) >> down
            y[k] = max(min(quotient, 32767), 0)


@jit.inlined
def _looked_up(table: int, x: Whole) -> int:
    """Interpolate a table for an integer of 16 bits: ``tables.interpolated``."""
    at = (x >> 7) + STEPS // 2
    entries = integers_at(table, SHORT)
    base = np.int64(entries[at])
    slope = np.int64(np.int16(entries[at + 1] - base))
    return int(base + ((slope * (x & 127) + 64) >> 7))


@reference(LogSoftmax, *SMALL)
def log_softmax(op: LogSoftmax, x: Array) -> Array:
    """Subtract the logarithm of the sum of exponentials from the differences, as fixed-point
    numbers.
    """
    limits = np.iinfo(x.dtype)
    scale, _ = _grids(op)
    scaling, below = Differences(float(scale)), of_largest(x)
    scaled = scaling.scaled(below)
    parts = np.where(below >= scaling.least, rounding_divide(exp(scaled), SUM_BITS), 0)
    logarithm = log(parts.astype(np.int64).sum(axis=-1, keepdims=True))
    back = float(1 << (BITS - scaling.shift)) / float(scaling.multiplier)
    lowest = multiply(logarithm - 2**BITS, *quantize_multiplier(back))
    counts = below > np.maximum(scaling.least - 1, lowest)
    steps = rounding_divide(scaled - logarithm, BITS - INTEGER_BITS - 4).astype(np.int64)
    shifted = np.clip(steps + limits.max, limits.min, limits.max)
    return np.where(counts, shifted, limits.min).astype(x.dtype)


@portable(Softmax, TensorType.INT16)
def softmax_16_in_c(op: Softmax, context: PortableContext) -> list[CCall]:
    """Call SOFTMAX of halfwords, with its tables."""
    del context
    (multiplier, shift), dims = factor_16(op), op.logits.dims
    if dims[-1] > MOST_SHORTS or multiplier < 0:
        raise UnsupportedError("rows of so many numbers, or a negative beta, have no C form")
    powers, inverses = tables_16()
    fields: dict[str, Field] = {"rows": element_count(dims[:-1]), "depth": dims[-1]}
    fields |= {"multiplier": multiplier, "shift": shift, "powers": powers, "inverses": inverses}
    return [CCall("luc_softmax_int16", fields, (op.logits,), op.results)]


@portable(Softmax, *SMALL)
def softmax_in_c(op: Softmax, context: PortableContext) -> list[CCall]:
    """Call SOFTMAX of bytes, with tables of exponentials."""
    del context
    powers, parts = powers_of_differences(op)
    dims = op.logits.dims
    if op.infer_dtype() != op.logits.dtype:
        raise UnsupportedError("results of more than 8 bits have no C form")
    fields: dict[str, Field] = {"rows": element_count(dims[:-1]), "depth": dims[-1]}
    fields["least"] = limits_of(op.logits.dtype)[0]
    tables: dict[str, Field] = {"powers": powers, "parts": parts}
    return [
        CCall(
            f"luc_softmax_{op.logits.dtype.name.lower()}", fields | tables, (op.logits,), op.results
        )
    ]
