"""Kernels of the reductions on quantized tensors: integers of 8 or 16 bits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import (
    mean_multiplier,
    multiply,
    multiply_wide,
    quantize_multiplier,
)
from luciole.ir.dtypes import NUMPY, tensor_type
from luciole.ir.ops.reduce import Mean, ReduceMax, ReduceMin, ReduceProd, Reduction, Sum
from luciole.ir.quantization import is_affine, per_tensor
from luciole.ir.rules import product
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.fixed_point.functions import saturated
from luciole.kernels.integers.elementwise_binary_bytes import rounding
from luciole.kernels.jit import LANES, Pointer
from luciole.kernels.jit.vector.byte_functions import rescaled_lanes
from luciole.kernels.jit.vector.bytes import (
    Vector,
    in_lanes,
    load_bytes,
    plus,
    store_bytes,
    total_of_lanes,
)
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.shorts import load_shorts, store_shorts
from luciole.kernels.portable.calls import CCall, Field, PortableContext, number_of, portable
from luciole.kernels.portable.integers import check_grid, limits_of
from luciole.kernels.reduce import Cut, ReduceRecord, gathered, where

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


@reference(Mean, *TYPES)
def mean(op: Mean, x: Array, indices: Array) -> Array:
    """Average on the result's grid; 0 as it is stored where there is nothing to average."""
    gone = where(op, x, indices)
    count = product(x.shape[i] for i in gone["axis"]) or 0
    return _scaled(op, x, gone, count, True)


@reference(Sum, *TYPES)
def sum_(op: Sum, x: Array, indices: Array) -> Array:
    """Add on the result's grid; 0 as it is stored where there is nothing to add."""
    gone = where(op, x, indices)
    count = product(x.shape[i] for i in gone["axis"]) or 0
    return _scaled(op, x, gone, count, False)


def _scaled(op: Mean | Sum, x: Array, gone: dict[str, Any], count: int, divided: bool) -> Array:
    scale, zero_point = per_tensor(op.input, "the input")
    to, to_zero = per_tensor(op.output, "the result")
    total = np.sum(x, dtype=np.int64, **gone)
    if not x.size:
        return np.zeros(total.shape, x.dtype)
    factor = mean_multiplier(scale, to, count if divided else 1)
    steps = (total - zero_point * count % 2**32).astype(np.int32)  # int32 wraps, as in TFLite
    return saturated(multiply(steps, *factor), to_zero, x)


@reference(ReduceMax, *TYPES)
def reduce_max(op: ReduceMax, x: Array, indices: Array) -> Array:
    """Find the largest integer, the lowest there is where there is nothing."""
    _same_grid(op)
    lowest = np.iinfo(x.dtype).min
    return np.asarray(np.max(x, initial=lowest, **where(op, x, indices)), x.dtype)


@reference(ReduceMin, *TYPES)
def reduce_min(op: ReduceMin, x: Array, indices: Array) -> Array:
    """Find the smallest integer, the highest there is where there is nothing."""
    _same_grid(op)
    highest = np.iinfo(x.dtype).max
    return np.asarray(np.min(x, initial=highest, **where(op, x, indices)), x.dtype)


class ExtremeRecord(ReduceRecord):
    """The number that changes nothing that it is compared with."""

    start: int


def _extreme(op: ReduceMax | ReduceMin, context: Context) -> Built:
    """Reduce plain integers and those that stand for the same numbers as the result's."""
    x, indices = context.pair
    if not op.reduction_indices.is_constant:
        return None
    grid = accepted(_same_grid, op)
    if isinstance(grid, Declined):
        return grid
    cut, _ = Cut.of_operator(op, x, indices)
    limits, largest = np.iinfo(x.dtype), isinstance(op, ReduceMax)
    memory = Memory()
    fields = cut.record(x, context.results[0], memory).fields()
    record = ExtremeRecord(**fields, start=int(limits.min if largest else limits.max))
    kind = int(EXTREMES[tensor_type(x.dtype)])
    return strided.step(_extremes(kind, int(largest), int(cut.columns)), record, x.size, memory)


EXTREMES = {**KINDS, TensorType.INT64: Kind.INT64}

for _cls in (ReduceMax, ReduceMin):
    native(_cls, *EXTREMES)(_extreme)


@cache
def _extremes(kind: int, largest: int, columns: int) -> jit.Kernel:
    """Make the kernel of the largest or smallest integers of a kind: of lines, or lane by lane."""

    @jit.inlined
    def compared(y_place: int, place: int, count: int) -> None:
        y: Pointer = integers_at(y_place, kind)
        line, best = integers_at(place, kind), y[0]
        for k in range(count):
            before = y[k] if columns else best
            best = max(before, line[k]) if largest else min(before, line[k])
            y[k if columns else 0] = best

    @jit.kernel
    def extremes(r: ExtremeRecord) -> None:
        for run in range(r.begin, r.end):
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            y = r.y + strided.offset(r.results, r.result_axes, 3, 1, run)
            for k in range(r.inner if columns else 1):
                integers_at(y, kind)[k] = r.start
            for again in range(r.turns):
                place = x + strided.offset(r.again, r.again_axes, 3, 0, again)
                for line in range(r.lines):
                    compared(y, place + line * r.distance, r.inner)

    return extremes


def _same_grid(op: Reduction) -> None:
    """Raise LucioleError where operand and result stand for different numbers."""
    if not (is_affine(op.input) and is_affine(op.output)):
        return
    grids = per_tensor(op.input, "the input"), per_tensor(op.output, "the result")
    if grids[0] != grids[1]:
        of_result, of_input = (
            "scale {} and zero point {}".format(*grid) for grid in reversed(grids)
        )
        raise LucioleError(f"the result has {of_result}; the input's {of_input} are needed")


@reference(ReduceProd, *TYPES)
def reduce_prod(op: ReduceProd, x: Array, indices: Array) -> Array:
    """Multiply, with the product brought to the result's grid after every factor; without scales
    the plain product, which wraps.

    With a single factor, too, as in TFLite.
    """
    gone = where(op, x, indices)
    if not is_affine(op.input):
        return np.asarray(np.prod(x, dtype=x.dtype, **gone))
    scale, zero_point = per_tensor(op.input, "the input")
    to, to_zero = per_tensor(op.output, "the result")
    shape = np.sum(x, **gone).shape
    if not x.size:
        return np.zeros(shape, x.dtype)
    kept = [i for i in range(x.ndim) if i not in gone["axis"]]
    factors = x.transpose(*kept, *gone["axis"]).reshape(*shape, -1).astype(np.int64) - zero_point
    factor = quantize_multiplier(float(scale) / float(to) ** (1.0 / factors.shape[-1]))
    product = factors[..., 0]
    for k in range(1, factors.shape[-1]):
        product = multiply_wide(product * factors[..., k], *factor).astype(np.int64)
    return saturated(multiply_wide(product, *factor), to_zero, x)


MOST_ADDED = {1: 1 << 22, 2: 1 << 14}
"""By bytes, integers whose sum, and that of their steps from zero, fits into int32."""

SHORT = int(KINDS[TensorType.INT16])


@native(Mean, *TYPES)
def build_mean(op: Mean, context: Context) -> Built:
    """Add in vector registers, then bring sums to the result's grid."""
    return _step(op, context, True)


@native(Sum, *TYPES)
def build_sum(op: Sum, context: Context) -> Built:
    """Add in vector registers, then bring sums to the result's grid."""
    return _step(op, context, False)


def _step(op: Mean | Sum, context: Context, divided: bool) -> Built:
    x, indices = context.operands
    if x is None or indices is None or not op.reduction_indices.is_constant or not x.size:
        return None
    cut, count = Cut.of_operator(op, x, indices)
    grid = accepted(_grid, op, x, count, divided)
    if isinstance(grid, Declined):
        return grid
    kernel = _kernel(int(KINDS[op.input.dtype]), int(cut.columns))
    memory = Memory()
    record = SumRecord(**cut.record(x, context.results[0], memory).fields(), **grid)
    return strided.step(kernel, record, x.size, memory)


class SumRecord(ReduceRecord):
    """The start of sums, the factor that brings them to the result's grid, its zero point and
    limits.
    """

    start: int
    multiplier: int
    half: int
    negative: int
    bits: int
    zero: int
    low: int
    high: int


def _grid(op: Mean | Sum, x: Array, count: int, divided: bool) -> dict[str, int] | Declined:
    """Return the fields that ``SumRecord`` adds; Declined where int32 would wrap around."""
    scale, zero_point = per_tensor(op.input, "the input")
    to, to_zero = per_tensor(op.output, "the result")
    factor, limits = mean_multiplier(scale, to, count if divided else 1), np.iinfo(x.dtype)
    up = max(int(factor[1]), 0)
    multiplier, half, negative, bits = rounding(factor)
    if not limits.min <= zero_point <= limits.max or count << up > MOST_ADDED[x.itemsize]:
        return Declined("sums may leave 32 bits")
    return {
        "start": -zero_point * count,
        "multiplier": multiplier << up,
        "half": half,
        "negative": negative,
        "bits": bits,
        "zero": to_zero,
        "low": int(limits.min),
        "high": int(limits.max),
    }


@cache
def _kernel(kind: int, columns: int) -> jit.Kernel:
    """Make the kernel that adds lines to one line (``columns``), or elements side by side to
    one.
    """

    @jit.kernel
    def quantized_sums(r: SumRecord) -> None:
        for run in range(r.begin, r.end):
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            y = r.y + strided.offset(r.results, r.result_axes, 3, 1, run)
            if columns:
                for first in range(0, r.inner, LANES):
                    lanes = min(r.inner - first, LANES)
                    if kind == SHORT:
                        _short_column(r, x + 2 * first, y + 2 * first, lanes)
                    else:
                        _column(r, x + first, y + first, lanes, kind)
            else:
                _line(r, x, y, kind)

    return quantized_sums


@jit.inlined
def _column(r: SumRecord, x: int, y: int, lanes: int, kind: int) -> None:
    """Compute up to 16 results, each of elements below one another."""
    sums = in_lanes(r.start)
    for again in range(r.turns):
        line = x + strided.offset(r.again, r.again_axes, 3, 0, again)
        for _ in range(r.lines):
            sums = plus(sums, load_bytes(line, lanes, 0, kind))
            line += r.distance
    _finish(r, sums, y, lanes)


@jit.inlined
def _line(r: SumRecord, x: int, y: int, kind: int) -> None:
    """Compute one result of elements side by side."""
    total = r.start
    for again in range(r.turns):
        line = x + strided.offset(r.again, r.again_axes, 3, 0, again)
        for _ in range(r.lines):
            total += _short_row(line, r.inner) if kind == SHORT else _row(line, r.inner, kind)
            line += r.distance
    upper = (total * r.multiplier + (1 << 30)) >> 31
    steps = ((upper + r.half + ((upper >> 63) & r.negative)) >> r.bits) + r.zero
    integers_at(y, kind)[0] = min(max(steps, r.low), r.high)


@jit.inlined
def _row(x: int, count: int, kind: int) -> int:
    """Add bytes side by side."""
    sums = in_lanes(0)
    for first in range(0, count, LANES):
        sums = plus(sums, load_bytes(x + first, min(count - first, LANES), 0, kind))
    total: int = total_of_lanes(sums)
    return total


@jit.inlined
def _short_row(x: int, count: int) -> int:
    """Add int16 side by side."""
    numbers, total = integers_at(x, SHORT), 0
    for k in range(count):
        total += int(numbers[k])
    return total


@jit.inlined
def _short_column(r: SumRecord, x: int, y: int, lanes: int) -> None:
    """Compute up to 16 results of int16, each of elements below one another."""
    sums = in_lanes(r.start)
    for again in range(r.turns):
        line = x + strided.offset(r.again, r.again_axes, 3, 0, again)
        for _ in range(r.lines):
            sums = plus(sums, load_shorts(line, lanes))
            line += r.distance
    steps = rescaled_lanes(sums, r.multiplier, r.half, r.negative, r.bits)
    store_shorts(plus(steps, in_lanes(r.zero)), r.low, r.high, y, lanes)


@jit.inlined
def _finish(r: SumRecord, sums: Vector, y: int, lanes: int) -> None:
    """Bring sums to the result's grid."""
    scaled = rescaled_lanes(sums, r.multiplier, r.half, r.negative, r.bits)
    store_bytes(plus(scaled, in_lanes(r.zero)), r.low, r.high, y, lanes)


@portable(Mean, *TYPES)
@portable(Sum, *TYPES)
def in_c(op: Mean | Sum, context: PortableContext) -> list[CCall]:
    """Call the sum of integers, brought to the result's grid."""
    (scale, zero), (to, to_zero) = per_tensor(op.input, "x"), per_tensor(op.output, "the result")
    x, before, extents = gathered(op, context)
    count = int(number_of(extents, "count"))
    least, most = limits_of(x.dtype)
    check_grid((zero, to_zero), (least, most), x.dtype)
    multiplier, shift = mean_multiplier(scale, to, count if isinstance(op, Mean) else 1)
    if not 0 < count << max(int(shift), 0) < MOST_ADDED[np.dtype(NUMPY[x.dtype]).itemsize]:
        raise UnsupportedError(f"a sum of {count} numbers has no C form")
    numbers: dict[str, Field] = {"multiplier": int(multiplier), "shift": int(shift)}
    numbers |= {"least": least, "most": most}
    fields = {**extents, "input_zero": zero, "result_zero": to_zero, **numbers}
    return [*before, CCall(f"luc_mean_{x.dtype.name.lower()}", fields, (x,), op.results)]
