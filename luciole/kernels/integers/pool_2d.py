"""Kernels of the pools on quantized tensors: integers of 8 or 16 bits, on one grid before and
after.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import activation_range
from luciole.ir.dtypes import NUMPY
from luciole.ir.moved_codes import misplaced
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D, Pool2D
from luciole.ir.quantization import is_affine, per_tensor
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.byte_functions import quotients
from luciole.kernels.jit.vector.bytes import (
    Vector,
    in_lanes,
    larger,
    larger_of_64,
    load_64,
    load_all_bytes,
    load_bytes,
    plus,
    store_64,
    store_all_bytes,
    store_bytes,
)
from luciole.kernels.jit.vector.shorts import (
    load_all_shorts,
    load_shorts,
    shares,
    store_all_shorts,
    store_shorts,
)
from luciole.kernels.pool_2d import Windows, inside_at, met, pool_fields, walk, windows
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.integers import check_grid
from luciole.schema.enums import ActivationFunctionType

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def limits(op: Pool2D, x: Array) -> tuple[int, int]:
    """Return the least and the largest result; scales do not matter without an activation."""
    if op.activation == ActivationFunctionType.NONE and not is_affine(op.output):
        range_of_type = np.iinfo(x.dtype)
        return int(range_of_type.min), int(range_of_type.max)
    return activation_range(op.activation, op.value.dtype, *per_tensor(op.output, "the result"))


@reads(AveragePool2D, *TYPES)
@reads(MaxPool2D, *TYPES)
def check_grid_of_result(op: Pool2D) -> None:
    """Raise LucioleError where operand and result stand for different numbers."""
    if any(misplaced(op, op.operands, op.results)):
        raise LucioleError("the operand and the result have two scales or zero points")


@reference(AveragePool2D, *TYPES)
def average_pool_2d(op: AveragePool2D, x: Array) -> Array:
    """Average each window without its padding, halves rounded away from zero."""
    ones = np.ones((1, *x.shape[1:3], 1), np.int64)
    inside = windows(op, ones).sum(axis=(4, 5), dtype=np.int64)
    total = windows(op, x).sum(axis=(4, 5), dtype=np.int64)
    size = (np.abs(total) + inside // 2) // inside
    return np.asarray(np.clip(np.sign(total) * size, *limits(op, x)), x.dtype)


@reference(MaxPool2D, *TYPES)
def max_pool_2d(op: MaxPool2D, x: Array) -> Array:
    """Find the largest element of each window; a window always has one that is not padding."""
    largest = windows(op, x, fill=np.iinfo(x.dtype).min).max(axis=(4, 5))
    return np.asarray(np.clip(largest, *limits(op, x)), x.dtype)


WIDE = 64
"""Channels whose largest bytes are found at a time."""

MOST_TAPS = 1 << 15
"""Bytes of a window whose sum single precision divides exactly; int16 whose sum is int32."""

SHORT = int(KINDS[TensorType.INT16])


@native(AveragePool2D, *TYPES)
def build_average(op: AveragePool2D, context: Context) -> Built:
    """Sum the taps that lie inside the image, then divide."""
    return _step(op, context, 1)


@native(MaxPool2D, *TYPES)
def build_max(op: MaxPool2D, context: Context) -> Built:
    """Find the largest of the taps that lie inside the image."""
    return _step(op, context, 0)


def _step(op: Pool2D, context: Context, is_mean: int) -> Built:
    x, y = context.first, context.results[0]
    taps = op.filter_height * op.filter_width
    edges = accepted(limits, op, x)
    if isinstance(edges, Declined):
        return edges
    if not y.size or taps > MOST_TAPS:
        return None
    memory = Memory()
    low, high = edges
    record = PoolRecord(**walk(op, x, y, memory).fields(), low=low, high=high)
    compiled = _kernel(int(KINDS[op.value.dtype]), is_mean)
    return strided.step(compiled, record, y.size * taps, memory)


class PoolRecord(Windows):
    """Windows of integers, and the limits of their results."""

    low: int
    high: int


@cache
def _kernel(kind: int, is_mean: int) -> jit.Kernel:
    """Make the kernel of means or of largest integers of a kind."""
    size = 2 if kind == SHORT else 1

    @jit.kernel
    def quantized_pool_2d(r: PoolRecord) -> None:
        channels, columns = r.channels, r.columns
        for line in range(r.begin, r.end):
            rows, source = met(r, line)
            for column in range(columns):
                across = inside_at(r.column_taps, column)
                x = source + across.first * r.pixel
                y = r.y + size * channels * (line * columns + column)
                taps, done = across.count, 0
                if not is_mean and size == 1:
                    done = channels // WIDE * WIDE
                    for first in range(0, done, WIDE):
                        _largest(r, y + first, x + first, rows, taps, kind)
                for first in range(done, channels, LANES):
                    lanes = min(channels - first, LANES)
                    _window(r, y + size * first, x + size * first, lanes, rows, taps, kind, is_mean)

    return quantized_pool_2d


@jit.inlined
def _largest(r: PoolRecord, y: int, x: int, rows: int, columns: int, kind: int) -> None:
    """Find the largest of rows and columns of taps, at least one, for 64 channels."""
    largest = load_64(x)
    for _ in range(rows):
        tap = x
        for _ in range(columns):
            largest = larger_of_64(largest, load_64(tap), kind)
            tap += r.pixel
        x += r.row
    store_64(largest, r.low, r.high, y, kind)


@jit.inlined
def _window(
    r: PoolRecord, y: int, x: int, lanes: int, rows: int, columns: int, kind: int, is_mean: int
) -> None:
    """Compute one result of up to 16 channels over rows and columns of taps."""
    total = in_lanes(0 if is_mean else -32768 if kind == SHORT else -128)
    for _ in range(rows):
        tap = x
        for _ in range(columns):
            values = _read(tap, lanes, kind)
            total = plus(total, values) if is_mean else larger(total, values)
            tap += r.pixel
        x += r.row
    if is_mean:
        count = rows * columns
        total = shares(total, count) if kind == SHORT else quotients(total, count)
    _write(r, total, y, lanes, kind)


@jit.inlined
def _read(x: int, lanes: int, kind: int) -> Vector:
    """Load up to 16 integers of a kind."""
    if kind == SHORT:
        return load_all_shorts(x) if lanes == LANES else load_shorts(x, lanes)
    return load_all_bytes(x, kind) if lanes == LANES else load_bytes(x, lanes, 0, kind)


@jit.inlined
def _write(r: PoolRecord, values: Vector, y: int, lanes: int, kind: int) -> None:
    """Write up to 16 results of a kind."""
    if kind == SHORT:
        if lanes == LANES:
            store_all_shorts(values, r.low, r.high, y)
        else:
            store_shorts(values, r.low, r.high, y, lanes)
    elif lanes == LANES:
        store_all_bytes(values, r.low, r.high, y)
    else:
        store_bytes(values, r.low, r.high, y, lanes)


def _in_c(function: str, op: Pool2D) -> list[CCall]:
    dtype = op.value.dtype
    least, most = limits(op, np.zeros(0, NUMPY[dtype]))
    check_grid((), (least, most), dtype)
    taps = op.filter_height * op.filter_width
    if taps * np.iinfo(NUMPY[dtype]).max >= 2**30:
        raise UnsupportedError(f"sums over windows of {taps} elements may leave 32 bits")
    edges: dict[str, Field] = {"least": least, "most": most}
    return [
        CCall(f"{function}_{dtype.name.lower()}", pool_fields(op) | edges, (op.value,), op.results)
    ]


@portable(AveragePool2D, *TYPES)
def average_in_c(op: AveragePool2D, context: PortableContext) -> list[CCall]:
    """Call the pool of integers."""
    del context
    return _in_c("luc_average_pool_2d", op)


@portable(MaxPool2D, *TYPES)
def max_in_c(op: MaxPool2D, context: PortableContext) -> list[CCall]:
    """Call the pool of integers."""
    del context
    return _in_c("luc_max_pool_2d", op)
