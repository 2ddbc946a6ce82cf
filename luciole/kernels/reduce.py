"""Kernels of the reductions. An axis of extent 0 gives what LiteRT gives, see each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, TensorType, Value
from luciole.ir.ops.reduce import (
    Mean,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Reduction,
    Sum,
)
from luciole.ir.rules import axes, integers, product
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import reduce, strided
from luciole.kernels.elementwise_binary import truncated_quotient
from luciole.kernels.formulas.elementwise import Binary, Unary
from luciole.kernels.jit import LANES, floats
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.elementwise import Chosen
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.moves import take

NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
INTEGERS = (TensorType.INT32, TensorType.INT64)
BYTE = int(Kind.UINT8)


def where(op: Reduction, x: Array, indices: Array) -> dict[str, Any]:
    """Return the axes as NumPy's keyword arguments."""
    numbers = axes(integers(indices, "reduction_indices"), x.ndim, "a reduction axis")
    return {"axis": numbers, "keepdims": op.keep_dims}


def _total(op: Reduction, x: Array, indices: Array) -> tuple[Array, int]:
    """Sum in the widest type, and count the elements of each sum."""
    gone = where(op, x, indices)
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    return np.asarray(np.sum(x, dtype=wide, **gone)), product(x.shape[i] for i in gone["axis"]) or 0


@reference(Sum, *NUMBERS)
def sum_(op: Sum, x: Array, indices: Array) -> Array:
    """Add elements, 0 where there are none; integers wrap, floats are added in double precision."""
    with np.errstate(all="ignore"):
        return _total(op, x, indices)[0].astype(x.dtype)


@reference(Mean, TensorType.FLOAT32)
def mean(op: Mean, x: Array, indices: Array) -> Array:
    """Average elements, NaN where there are none."""
    with np.errstate(all="ignore"):
        total, count = _total(op, x, indices)
        return np.asarray(total / np.float64(count), x.dtype)


@reference(Mean, *INTEGERS)
def integer_mean(op: Mean, x: Array, indices: Array) -> Array:
    """Average integers, rounded toward zero; 0 where there are none. Sums wrap in 64 bits."""
    total, count = _total(op, x, indices)
    return truncated_quotient(total, np.asarray(max(count, 1))).astype(x.dtype)


@reference(ReduceMax, *NUMBERS)
def reduce_max(op: ReduceMax, x: Array, indices: Array) -> Array:
    """Find the largest element; NaN is skipped, the lowest value (-infinity for floats) stands
    where nothing is left.
    """
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    gone = where(op, x, indices)
    return np.asarray(np.fmax.reduce(x, initial=x.dtype.type(lowest), **gone), x.dtype)


@reference(ReduceMin, *NUMBERS)
def reduce_min(op: ReduceMin, x: Array, indices: Array) -> Array:
    """Find the smallest element; NaN is skipped, the highest value (infinity for floats) stands
    where nothing is left.
    """
    highest = np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max
    gone = where(op, x, indices)
    return np.asarray(np.fmin.reduce(x, initial=x.dtype.type(highest), **gone), x.dtype)


@reference(ReduceProd, *NUMBERS)
def reduce_prod(op: ReduceProd, x: Array, indices: Array) -> Array:
    """Multiply elements, 1 where there are none; integers wrap."""
    return np.asarray(np.prod(x, dtype=x.dtype, **where(op, x, indices)))


@reference(ReduceAny, TensorType.BOOL)
@reference(ReduceMax, TensorType.BOOL)
@reference(Sum, TensorType.BOOL)
def reduce_any(op: Reduction, x: Array, indices: Array) -> Array:
    """Return whether any element is true; false where there are none."""
    return np.asarray(np.any(x, **where(op, x, indices)))


@reference(ReduceAll, TensorType.BOOL)
@reference(ReduceMin, TensorType.BOOL)
@reference(ReduceProd, TensorType.BOOL)
def reduce_all(op: Reduction, x: Array, indices: Array) -> Array:
    """Return whether all elements are true; true where there are none."""
    return np.asarray(np.all(x, **where(op, x, indices)))


@native(Sum, TensorType.FLOAT32)
def build_sum(op: Sum, context: Context) -> NativeStep | None:
    """Add in single precision, in short runs whose sums are added."""
    return _step(op, context, Binary.ADD, 0, False)


@native(Mean, TensorType.FLOAT32)
def build_mean(op: Mean, context: Context) -> NativeStep | None:
    """Divide the sum."""
    return _step(op, context, Binary.ADD, 0, True)


@native(ReduceMax, TensorType.FLOAT32)
def build_max(op: ReduceMax, context: Context) -> NativeStep | None:
    """Find the largest element, NaN aside."""
    return _step(op, context, Binary.MAXIMUM, -np.inf, False)


@native(ReduceMin, TensorType.FLOAT32)
def build_min(op: ReduceMin, context: Context) -> NativeStep | None:
    """Find the smallest element, NaN aside."""
    return _step(op, context, Binary.MINIMUM, np.inf, False)


@native(ReduceProd, TensorType.FLOAT32)
def build_prod(op: ReduceProd, context: Context) -> NativeStep | None:
    """Multiply element after element, in the reference's and LiteRT's order: products of parts
    might be too large or too small where those of the whole are not.
    """
    x, indices = context.operands
    if x is None or indices is None or not op.reduction_indices.is_constant:
        return None
    cut, _ = Cut.of_operator(op, x, indices, columns=True)
    memory = Memory()
    record = cut.record(x, context.results[0], memory)
    return strided.step(_products(), record, x.size, memory)


def _step(
    op: Reduction, context: Context, function: Binary, start: float, is_mean: bool
) -> NativeStep | None:
    x, indices = context.operands
    y = context.results[0]
    if x is None or indices is None or not op.reduction_indices.is_constant:
        return None
    cut, count = Cut.of_operator(op, x, indices)
    share = (1 / count if count else np.nan) if is_mean else 1.0
    return cut.step(function, x, y, start, share)


class ReduceRecord(Shared):
    """Results, and the loops over the elements that become one of them, see ``Cut``."""

    y: int
    x: int
    results: int
    """The loops over results, as ``loops.offset`` takes them, and their number."""
    result_axes: int
    again: int
    """The outer loops over reduced elements, their number, and how often they run."""
    again_axes: int
    turns: int
    lines: int
    distance: int
    inner: int


class FoldRecord(ReduceRecord):
    """The start of a reduction, and the factor of its result."""

    start: float
    share: float


@dataclass(frozen=True)
class Cut:
    """A reduction's loops (extent, bytes in x, bytes in y) by what they do.

    ``results`` go from result to result, ``inner`` elements stand side by side and are reduced, or
    (``columns``) are results. What is left of the reduction is ``lines``, ``distance`` bytes from
    one to the next, over and over by the loops ``again``.
    """

    results: strided.Table
    again: strided.Table
    lines: int
    distance: int
    inner: int
    columns: bool

    @classmethod
    def of_operator(
        cls, op: Reduction, x: Array, indices: Array, *, columns: bool = False
    ) -> tuple[Cut, int]:
        """Find the loops of an operator, and how many elements become one. ``columns``: a result
        stands alone where none are side by side.
        """
        gone = where(op, x, indices)["axis"]
        kept = [1 if i in gone else n for i, n in enumerate(x.shape)]
        to = [0 if i in gone else s for i, s in enumerate(strided.contiguous(kept, x.itemsize))]
        table = strided.collapsed(x.shape, strided.contiguous(x.shape, x.itemsize), to)
        if columns and not table[-1, 2]:
            table = np.vstack([table, [1, x.itemsize, x.itemsize]])
        return cls.of(table), product(x.shape[i] for i in gone) or 0

    @classmethod
    def of(cls, table: strided.Table) -> Cut:
        """Take the inner loop from the end of the table."""
        columns = bool(table[-1, 2])
        around, inner = table[:-1], int(table[-1, 0])
        results, again = around[around[:, 2] != 0], around[around[:, 2] == 0]
        lines, distance = again[-1, :2] if len(again) else (1, 0)
        return cls(results, again[:-1], int(lines), int(distance), inner, columns)

    def record(self, x: Array, y: Array, memory: Memory) -> ReduceRecord:
        """Describe how a kernel goes from result to result."""
        to, source = self._places(x, y)
        return ReduceRecord(
            begin=0,
            end=strided.count(self.results) if y.size else 0,
            y=to,
            x=source,
            results=memory.keep(self.results, len(self.results), 3),
            result_axes=len(self.results),
            again=memory.keep(self.again, len(self.again), 3),
            again_axes=len(self.again),
            turns=strided.count(self.again),
            lines=self.lines,
            distance=self.distance,
            inner=self.inner,
        )

    def _places(self, x: Array, y: Array) -> tuple[int, int]:
        """Return the addresses of result and operand: lines of the one become a line, or one
        element, of the other.
        """
        item, line = x.itemsize, self.inner * x.itemsize
        over = [*strided.moves(self.again, 0), turns(self.lines, self.distance)]
        to = reach(y, line if self.columns else item, *strided.moves(self.results, 1))
        return to, reach(x, line, *strided.moves(self.results, 0), *over)

    def step(self, function: Binary, x: Array, y: Array, start: float, share: float) -> NativeStep:
        """Run the kernel on its record."""
        memory = Memory()
        record = FoldRecord(**self.record(x, y, memory).fields(), start=start, share=share)
        kernel = _columns(int(function)) if self.columns else _rows(int(function))
        return strided.step(kernel, record, x.size, memory)


SCALE, MUL = int(Unary.SCALE), int(Binary.MUL)


@cache
def _rows(function: int) -> jit.Kernel:
    """Reduce elements side by side to one."""

    @jit.kernel
    def reduced_rows(r: FoldRecord) -> None:
        chosen = elementwise.function(function)
        if r.result_axes == 1 and r.turns == 1 and r.lines == 1:
            _lines(chosen, r)
            return
        for run in range(r.begin, r.end):
            total = elementwise.spread(r.start)
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            for again in range(r.turns):
                line = x + strided.offset(r.again, r.again_axes, 3, 0, again)
                for _ in range(r.lines):
                    part = reduce.row(chosen, line, r.inner, r.start)
                    total = elementwise.combined(chosen, part, total)
                    line += r.distance
            y = floats(r.y + strided.offset(r.results, r.result_axes, 3, 1, run))
            y[0] = elementwise.folded(chosen, total) * r.share

    return reduced_rows


@jit.inlined
def _lines(chosen: Chosen, r: FoldRecord) -> None:
    """Reduce results whose elements all stand in one line, evenly apart: the most usual ones."""
    start, share, count = r.start, r.share, r.inner  # read once: results might lie in a record
    dx = strided.offset(r.results, 1, 3, 0, 1)
    dy = strided.offset(r.results, 1, 3, 1, 1)
    x, y = r.x + r.begin * dx, r.y + r.begin * dy
    for _ in range(r.end - r.begin):
        total = reduce.row(chosen, x, count, start)
        floats(y)[0] = elementwise.folded(chosen, total) * share
        x += dx
        y += dy


@cache
def _columns(function: int) -> jit.Kernel:
    """Reduce lines to one line."""

    @jit.kernel
    def reduced_columns(r: FoldRecord) -> None:
        chosen, scale = elementwise.function(function), elementwise.function(SCALE)
        for run in range(r.begin, r.end):
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            y = r.y + strided.offset(r.results, r.result_axes, 3, 1, run)
            for first in range(0, r.inner, LANES):
                lanes = min(r.inner - first, LANES)
                totals = elementwise.spread(r.start)
                for again in range(r.turns):
                    lines = x + 4 * first + strided.offset(r.again, r.again_axes, 3, 0, again)
                    part = reduce.column(chosen, lines, r.distance, r.lines, lanes, r.start)
                    totals = elementwise.combined(chosen, part, totals)
                totals = elementwise.mapped(scale, totals, r.share, r.share)
                reduce.store(totals, y + 4 * first, lanes)

    return reduced_columns


@cache
def _products() -> jit.Kernel:
    """Multiply lines to one line, in order."""

    @jit.kernel
    def multiplied(r: ReduceRecord) -> None:
        chosen = elementwise.function(MUL)
        for run in range(r.begin, r.end):
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            y = r.y + strided.offset(r.results, r.result_axes, 3, 1, run)
            for first in range(0, r.inner, LANES):
                lanes = min(r.inner - first, LANES)
                products = elementwise.spread(1.0)
                for again in range(r.turns):
                    line = x + 4 * first + strided.offset(r.again, r.again_axes, 3, 0, again)
                    for _ in range(r.lines):
                        products = elementwise.combined(
                            chosen, reduce.load(line, lanes, 1.0), products
                        )
                        line += r.distance
                reduce.store(products, y + 4 * first, lanes)

    return multiplied


class TruthRecord(ReduceRecord):
    """The truth of nothing, which one other truth changes for good, 0 or 1."""

    start: int


@native(ReduceAny, TensorType.BOOL)
@native(ReduceMax, TensorType.BOOL)
@native(Sum, TensorType.BOOL)
def build_any(op: Reduction, context: Context) -> NativeStep | None:
    """Look for a truth."""
    return _truths(op, context, 0)


@native(ReduceAll, TensorType.BOOL)
@native(ReduceMin, TensorType.BOOL)
@native(ReduceProd, TensorType.BOOL)
def build_all(op: Reduction, context: Context) -> NativeStep | None:
    """Look for false elements."""
    return _truths(op, context, 1)


def _truths(op: Reduction, context: Context, start: int) -> NativeStep | None:
    x, indices = context.operands
    if x is None or indices is None or not op.reduction_indices.is_constant:
        return None
    memory = Memory()
    cut, _ = Cut.of_operator(op, x, indices)
    fields = cut.record(x, context.results[0], memory).fields()
    record = TruthRecord(**fields, start=start)
    return strided.step(_found(int(cut.columns)), record, x.size, memory)


@cache
def _found(columns: int) -> jit.Kernel:
    """Make the kernel of lines that become one line (``columns``), or elements side by side that
    become one.
    """

    @jit.kernel
    def found_truths(r: TruthRecord) -> None:
        for run in range(r.begin, r.end):
            x = r.x + strided.offset(r.results, r.result_axes, 3, 0, run)
            y = integers_at(r.y + strided.offset(r.results, r.result_axes, 3, 1, run), BYTE)
            for k in range(r.inner if columns else 1):
                y[k] = r.start
            for again in range(r.turns):
                line = x + strided.offset(r.again, r.again_axes, 3, 0, again)
                for _ in range(r.lines):
                    _add_truths(y, line, r.inner, columns, r.start)
                    line += r.distance

    return found_truths


@jit.inlined
def _add_truths(y: jit.Pointer, x: int, count: int, columns: int, start: int) -> None:
    """Change results by a line of truths: a place for each, or one for all."""
    truths = integers_at(x, BYTE)
    for k in range(count):
        if (truths[k] != 0) != (start != 0):
            y[k * columns] = 1 - start


def gathered(
    op: Reduction, context: PortableContext
) -> tuple[Value, list[CCall], dict[str, Field]]:
    """Return the operand with the reduced axes next to each other, the calls that bring them there,
    and the extents before, of and behind them.
    """
    x, rank = op.input, len(op.input.dims)
    gone = sorted(axes(integers(context.constant(op.reduction_indices), ""), rank, "an axis"))
    if not gone:
        return x, [], {"outer": element_count(x.dims), "count": 1, "inner": 1}
    if gone[-1] - gone[0] < len(gone):
        return x, [], plain.lines(x, gone)
    order = (*(axis for axis in range(rank) if axis not in gone), *gone)
    turned = Value(f"{x.name}_turned", x.dtype, tuple(x.dims[axis] for axis in order))
    behind = plain.lines(turned, range(rank - len(gone), rank))
    return turned, [take(x, turned, lambda array: array.transpose(order))], behind


def _in_c(cls: type[Reduction], function: str, *types: TensorType) -> None:
    @portable(cls, *types)
    def calls(op: Reduction, context: PortableContext) -> list[CCall]:
        x, before, extents = gathered(op, context)
        name = f"luc_{function}_of_{plain.suffix(x.dtype)}"
        return [*before, CCall(name, extents, (x,), op.results, layout="luc_lines")]


_in_c(Sum, "sum", *NUMBERS)
_in_c(ReduceProd, "product", *NUMBERS)
_in_c(ReduceMax, "largest", *NUMBERS, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_in_c(ReduceMin, "smallest", *NUMBERS, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_PAIRS: Sequence[tuple[type[Reduction], type[Reduction]]] = (
    *((ReduceAny, ReduceAll), (ReduceMax, ReduceMin), (Sum, ReduceProd)),
)
for _any, _all in _PAIRS:
    _in_c(_any, "any", TensorType.BOOL)
    _in_c(_all, "all", TensorType.BOOL)


@portable(Mean, TensorType.FLOAT32)
def mean_in_c(op: Mean, context: PortableContext) -> list[CCall]:
    """Call the mean of floats."""
    x, before, extents = gathered(op, context)
    return [*before, CCall("luc_mean_float", extents, (x,), op.results)]
