"""BATCH_MATMUL kernels of quantized tensors: integers of 8 or 16 bits, of one scale each."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import quantize_multiplier, reduced_multiplier
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.quantization import per_tensor
from luciole.ir.value import shape_text
from luciole.kernels import jit
from luciole.kernels.batch_matmul import batch_at, batch_matmul, matrices, matrices_in_c
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.integers.batch_matmul_bytes import ByteProduct
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.conversions import Kind, doubles_at, integers_at
from luciole.kernels.jit.vector.doubles import (
    ITEM,
    add_row_products,
    double_rows,
    store_rows,
)
from luciole.kernels.layers.floats.layer import by_lanes
from luciole.kernels.layers.int8.byte_layer import Side
from luciole.kernels.layers.int8.layer import IntegerLayer
from luciole.kernels.layers.int8.rescale import Rescaling, centred
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.integers import check_grid, zeros
from luciole.schema.enums import ActivationFunctionType, Padding

WIDE = int(Kind.INT16)
"""Results of a product whose sums have 64 bits."""

NONE = ActivationFunctionType.NONE
INT8, INT16 = TensorType.INT8, TensorType.INT16

ROWS = 4
"""Rows of results whose sums are kept in registers at a time."""

MOST_PRODUCTS = 1 << 21
"""Products of 17 bit integers whose sum a double has exactly, whatever their order."""


MOST_KNOWN = 1 << 26
"""Bytes of constant matrices that are kept as doubles."""


@reference(BatchMatMul, INT8, INT16, (INT16, INT8))
def batch_matmul_integer(op: BatchMatMul, x: Array, y: Array) -> Array:
    """Multiply quantized matrices of one scale each; sums are integers."""
    to = _rescaling(op)
    sums = batch_matmul(op, centred(x, to.input_zero), centred(y, to.weights_zero))
    return to.convolved(sums, None, None)


def _rescaling(op: BatchMatMul) -> Rescaling:
    per_tensor(op.y, "the second matrix")  # which may not have a scale for each column
    return Rescaling.of(op.x, op.y, op.output, 0, NONE, single=True, any_zero=True)


class Matrix(Record):
    """A matrix of integers: how far rows and columns are apart, in elements, and its zero point."""

    rows: int
    columns: int
    down: int
    across: int
    zero: int


class IntegerBatches(Record):
    """A table of batches and the two matrices; where they are kept as doubles, [rows, depth] and
    [blocks, depth, 16] (with ``known``, batches have the second one so), and a tile of sums; and
    how sums become results.
    """

    batches: int
    count: int
    left: int
    right: int
    lefts: int
    rights: int
    known: int
    sums: int
    multiplier: int
    shift: int
    zero: int
    low: int
    high: int


_matrix_at = reader(Matrix)


class _Sides(NamedTuple):
    """Rows, depth and columns of a product."""

    rows: int
    depth: int
    columns: int

    def check(self, op: BatchMatMul, left: Array, right: Array) -> None:
        """Raise ExecutionError for matrices of other extents than a kernel walks."""
        both = (left, self[:2], op.adjoint_lhs), (right, self[1:], op.adjoint_rhs)
        for matrix, (down, across), turned in both:
            expected = (across, down) if turned else (down, across)
            if matrix.shape[-2:] != expected:
                extents, right_one = shape_text(matrix.shape[-2:]), shape_text(expected)
                raise ExecutionError(f"a compiled kernel would walk {right_one} of {extents}")


@native(BatchMatMul, INT8, INT16, (INT16, INT8))
def build(op: BatchMatMul, context: Context) -> Built:
    """Multiply blocks of 16 columns by four rows at a time, in doubles, which are exact."""
    left, right = context.operands
    (y,) = context.results
    to = accepted(_rescaling, op)
    if isinstance(to, Declined):
        return to
    if left is None or right is None or not left.size or not right.size:
        return None
    *batches, rows, columns = y.shape
    sides = _Sides(rows, left.shape[-2 if op.adjoint_lhs else -1], columns)
    sides.check(op, left, right)
    scaling = accepted(_scaling, to)
    if isinstance(scaling, Declined):
        return scaling
    if sides.depth > MOST_PRODUCTS:
        return None
    layer = _as_layer(op, left, right, y, to)
    if isinstance(layer, NativeStep):
        return layer
    memory, count = Memory(), math.prod(batches)
    known = _known(op, right, to, memory)
    places = [
        matrices(left, left.itemsize * rows * sides.depth, batches),
        matrices(known, known.itemsize * math.prod(known.shape[-2:]), batches),
        matrices(y, y.itemsize * rows * columns, batches),
    ]
    blocks, table = -(-columns // LANES), memory.keep(np.stack(places, 1), count, 3)
    scaling |= {"zero": to.result_zero, "low": to.limits[0], "high": to.limits[1]}
    pairs = ByteProduct(*sides, (op.adjoint_lhs, op.adjoint_rhs))
    if op.x.dtype == op.y.dtype == INT8 and known is right and pairs.fits:
        return pairs.step(table, count, (to.input_zero, to.weights_zero), scaling, memory)
    record = IntegerBatches(
        batches=table,
        count=count,
        known=int(known is not right),
        **scaling,
        **_operands(op, to, sides, memory),
        rights=memory.scratch(0 if known is not right else blocks, sides.depth, LANES, 2),
    )
    kinds = (int(KINDS[value.dtype]) for value in (op.x, op.y, op.output))
    return memory.step(_kernel(*kinds).address, record)


def _as_layer(op: BatchMatMul, left: Array, right: Array, y: Array, to: Rescaling) -> Built:
    """Multiply bytes by one constant matrix as a layer whose pixels are the rows."""
    if op.x.dtype != INT8 or not op.y.is_constant or op.adjoint_lhs:
        return None
    depth, columns = left.shape[-1], y.shape[-1]
    if right.size != depth * columns:
        return None
    weights = right.reshape(columns, depth) if op.adjoint_rhs else right.reshape(depth, columns).T
    rows = left.reshape(1, 1, -1, depth)
    one, side = (Side.of(size, 1, 1, 1, Padding.VALID) for size in rows.shape[1:3])
    layer = IntegerLayer(one, side, rows, y, to=to)
    return layer.convolution(weights[None, :, None, None], None, exact=False)


def _known(op: BatchMatMul, right: Array, to: Rescaling, memory: Memory) -> Array:
    """Return the second matrices as the kernel multiplies by them, [..., blocks x depth, 16], where
    they are constant and not too large; else as they are.
    """
    if not op.y.is_constant or ITEM * right.size > MOST_KNOWN:
        return right
    steps = centred(right.swapaxes(-1, -2) if op.adjoint_rhs else right, to.weights_zero)
    *own, depth, columns = steps.shape
    packed = by_lanes(steps.swapaxes(-1, -2).reshape(-1, columns, depth), LANES)
    memory.keep(
        packed.reshape(*own, -1, LANES), *own, packed.size // LANES // math.prod(own), LANES
    )
    return memory.arrays[-1]


def _scaling(to: Rescaling) -> dict[str, int]:
    """Return multiplier and shift of results: of 15 bits where sums have 64."""
    to.convolved(np.zeros(1, np.int64), None, None)  # refuses factors that are too large
    multiplier, shift = (int(n) for n in quantize_multiplier(to.factors[0]))
    if to.dtype == INT16:
        multiplier = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    return {"multiplier": multiplier, "shift": shift}


def _operands(op: BatchMatMul, to: Rescaling, sides: _Sides, memory: Memory) -> dict[str, int]:
    """Describe both matrices, and take room for them as doubles."""
    rows, depth, columns = sides
    left = Matrix(
        rows=rows,
        columns=depth,
        down=1 if op.adjoint_lhs else depth,
        across=rows if op.adjoint_lhs else 1,
        zero=to.input_zero,
    )
    right = Matrix(
        rows=depth,
        columns=columns,
        down=1 if op.adjoint_rhs else columns,
        across=depth if op.adjoint_rhs else 1,
        zero=to.weights_zero,
    )
    return {
        "left": memory.record(left),
        "right": memory.record(right),
        "lefts": memory.scratch(rows, depth, 2),
        "sums": memory.scratch(ROWS, LANES, 2),
    }


@jit.separate
def _unpack(to: int, source: int, m: Matrix, lanes: int, kind: int) -> None:
    """Write a matrix as doubles [blocks, rows, lanes], less its zero point."""
    for first in range(0, m.columns, lanes):
        count = min(lanes, m.columns - first)
        for row in range(m.rows):
            place, numbers = doubles_at(to), integers_at(source, kind)
            start = row * m.down + first * m.across
            for i in range(count):
                place[i] = np.float64(numbers[start + i * m.across] - m.zero)
            to += ITEM * lanes


@jit.inlined
def _narrow(sum: float, r: IntegerBatches) -> int:
    """Scale a sum of int32 as gemmlowp does: two roundings."""
    raised = np.int64(np.int32(np.int64(sum) << max(r.shift, 0)))
    high = (raised * r.multiplier + (1 << 30)) >> 31
    down = max(-r.shift, 0)
    rest = high & ((1 << down) - 1)
    rounds_up = rest > (((1 << down) - 1) >> 1) + np.int64(high < 0)
    return int((high >> down) + np.int64(rounds_up))


@jit.inlined
def _wide(sum: float, r: IntegerBatches) -> int:
    """Scale a sum of int64 by a multiplier of 15 bits."""
    total = 15 - r.shift
    scaled = (np.int64(sum) * r.multiplier + (1 << (total - 1))) >> total
    return int(np.int32(scaled))


@jit.inlined
def _write(r: IntegerBatches, to: int, rows: int, columns: int, step: int, kind: int) -> None:
    """Write a tile of sums as results, rows ``step`` integers apart."""
    for row in range(rows):
        sums, y = doubles_at(r.sums + ITEM * LANES * row), integers_at(to, kind)
        for i in range(columns):
            scaled = _wide(sums[i], r) if kind == WIDE else _narrow(sums[i], r)
            y[row * step + i] = min(max(scaled + r.zero, r.low), r.high)


@jit.inlined
def _sum(sums: int, x: int, weights: int, depth: int, rows: int) -> None:
    """Compute up to four rows of sums of products."""
    if rows == ROWS:
        four = double_rows(ROWS)
        for k in range(depth):
            place = weights + ITEM * LANES * k
            four = add_row_products(four, x + ITEM * k, ITEM * depth, place)
        store_rows(four, sums)
        return
    for row in range(rows):
        one = double_rows(1)
        for k in range(depth):
            place = weights + ITEM * LANES * k
            one = add_row_products(one, x + ITEM * (row * depth + k), 0, place)
        store_rows(one, sums + ITEM * LANES * row)


@cache
def _kernel(left: int, right: int, result: int) -> jit.Kernel:
    """Make the kernel of matrices of these kinds."""
    size = Kind(result).size

    @jit.kernel
    def integer_batches(r: IntegerBatches) -> None:
        a, b = _matrix_at(r.left, 0), _matrix_at(r.right, 0)
        rows, depth, columns, kept = a.rows, a.columns, b.columns, 0
        for number in range(r.count):
            batch = batch_at(r.batches, number)
            if batch.right != kept and not r.known:
                _unpack(r.rights, batch.right, b, LANES, right)
            kept = batch.right
            rights = kept if r.known else r.rights
            _unpack(r.lefts, batch.x, a, depth, left)
            for first in range(0, columns, LANES):
                weights, across = rights + ITEM * depth * first, min(columns - first, LANES)
                for row in range(0, rows, ROWS):
                    down, to = min(rows - row, ROWS), batch.y + size * (row * columns + first)
                    _sum(r.sums, r.lefts + ITEM * depth * row, weights, depth, down)
                    _write(r, to, down, across, columns, result)

    return integer_batches


@portable(BatchMatMul, INT8, INT16, (INT16, INT8))
def in_c(op: BatchMatMul, context: PortableContext) -> list[CCall]:
    """Call the product of integers. Raises UnsupportedError where sums may be too large."""
    del context
    to, kind = _rescaling(op), _KINDS[op.x.dtype, op.y.dtype]
    check_grid((to.input_zero, to.result_zero), to.limits, op.x.dtype)
    check_grid((to.weights_zero,), (0, 0), op.y.dtype)
    if op.x.dims[-2 if op.adjoint_lhs else -1] > MOST_DEPTH:
        raise UnsupportedError(f"sums of more than {MOST_DEPTH} products have no C form")
    (multiplier,), (shift,) = quantize_multiplier(to.factors)
    if op.x.dtype == INT16:
        multiplier, shift = reduced_multiplier(multiplier, shift)
    fields: dict[str, Field] = zeros(to) | {"multiplier": int(multiplier), "shift": int(shift)}
    fields |= {"x_zero": fields.pop("input_zero"), "y_zero": to.weights_zero}
    fields |= matrices_in_c(op)
    return [CCall(f"luc_batch_matmul_{kind}", fields, (op.x, op.y), op.results)]


_KINDS = {(INT8, INT8): "int8", (INT16, INT16): "int16_long", (INT16, INT8): "int16_by_int8"}
"""Kinds of functions by the types of both matrices."""

MOST_DEPTH = 2**31 // 2**16 - 1
"""Products of steps from zero of two bytes whose sum fits into 32 bits, and of two halfwords whose
sum fits into 46.
"""
