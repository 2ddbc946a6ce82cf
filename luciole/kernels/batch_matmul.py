"""BATCH_MATMUL kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context, NativeStep, Stage
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import native, reference
from luciole.kernels.core.shares import ranges, stages
from luciole.kernels.jit import floats
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.layers.floats.layer import FloatLayer, Geometry, misfit
from luciole.kernels.layers.floats.loops import FloatRecord
from luciole.kernels.layers.geometry import sequence
from luciole.kernels.layers.int8.hybrid import of_rows, weight_scale
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.schema.enums import ActivationFunctionType

NONE = ActivationFunctionType.NONE
LEAST_PRODUCTS = 32_000
"""Products below which a thread of its own does not pay."""


@reference(BatchMatMul, TensorType.FLOAT32)
def batch_matmul(op: BatchMatMul, x: Array, y: Array) -> Array:
    """Multiply two matrices per batch."""
    left = x.swapaxes(-1, -2) if op.adjoint_lhs else x
    right = y.swapaxes(-1, -2) if op.adjoint_rhs else y
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(left, right))


@reference(BatchMatMul, (TensorType.FLOAT32, TensorType.INT8))
def batch_matmul_hybrid(op: BatchMatMul, x: Array, y: Array) -> Array:
    """Multiply float activations, quantized row by row, and integer weights, as TFLite does; sums
    are integers.
    """
    scale = weight_scale(op.y)
    left = x.swapaxes(-1, -2) if op.adjoint_lhs else x
    rows = np.ascontiguousarray(left).reshape(math.prod(left.shape[:-1]), left.shape[-1])
    quantized, scales = of_rows(rows, asymmetric=op.asymmetric_quantize_inputs)
    right = y.swapaxes(-1, -2) if op.adjoint_rhs else y
    sums = np.matmul(quantized.reshape(left.shape), right.astype(np.float64)).astype(np.float32)
    return np.asarray(sums * (scales * scale).reshape(*left.shape[:-1], 1))


@native(BatchMatMul, TensorType.FLOAT32)
def build(op: BatchMatMul, context: Context) -> Built:
    """Run the product as a convolution: rows of the left matrix are its pixels, the right matrix
    its weights.
    """
    left, right = context.operands
    (y,) = context.results
    if left is None or right is None:
        return None
    if declined := misfit(NONE, left, y):
        return declined
    *_, rows, columns = y.shape
    depth = left.size // int(np.prod(left.shape[:-2])) // rows
    if op.y.is_constant and right.size == depth * columns and not op.adjoint_lhs:
        weights = right.reshape(columns, depth) if op.adjoint_rhs else right.reshape(depth, -1).T
        layer = FloatLayer(Geometry.of_rows(left.size // depth, depth), NONE, left, y)
        return layer.convolution(weights[None, :, None], None)
    return _with_any_right(op, left, right, y, depth)


def _with_any_right(
    op: BatchMatMul, left: Array, right: Array, y: Array, depth: int
) -> NativeStep | None:
    """Pack the right matrix of each batch when it is there, then multiply: threads share these."""
    count, work = math.prod(y.shape[:-2]), y.shape[-2] * y.shape[-1] * depth
    kept: list[Memory] = []

    def split(threads: int) -> list[Stage]:
        parts = parts_of(count, work, threads)
        shares = [_batches(op, left, right, y, depth) for _ in parts]
        kept.extend(memory for _, memory in shares)
        pairs = zip(shares, parts, strict=True)
        return stages([part_of(record, begin, end) for (record, _), (begin, end) in pairs])

    record, memory = _batches(op, left, right, y, depth)
    return memory.step(_multiply.address, record, split)


def _batches(
    op: BatchMatMul, left: Array, right: Array, y: Array, depth: int
) -> tuple[Batches, Memory]:
    """Describe the products of all batches, with memory of their own."""
    *batches, rows, columns = y.shape
    layer = FloatLayer(Geometry.of_rows(rows, depth), NONE, left, y)
    layer.convolution(np.zeros((1, columns, 1, depth), np.float32), None)
    memory, weights = layer.memory, min(_of(part).weights for part in layer.parts)
    turned = memory.scratch(rows, depth) if op.adjoint_lhs else 0
    across = _steps(depth, columns, turned=op.adjoint_rhs)
    packing = _packing(weights, depth, columns, layer.lanes, across)
    turning = _packing(turned, rows, depth, depth, _steps(rows, depth, turned=True))
    first = min(_of(part).y for part in layer.parts)
    parts = [
        Part(kernel=p.address, record=memory.record(p.record), y=_of(p).y - first)
        for p in layer.parts
    ]
    sizes = (rows * depth, depth * columns, rows * columns)
    places = [matrices(a, 4 * n, batches) for a, n in zip((left, right, y), sizes, strict=True)]
    count = math.prod(batches)
    record = Batches(
        batches=memory.keep(np.stack(places, 1), count, 3),
        count=count,
        parts=memory.table(parts, Part),
        part_count=len(parts),
        packing=memory.record(packing),
        turning=memory.record(turning) if op.adjoint_lhs else 0,
        turned=turned,
    )
    return record, memory


class Packing(Record):
    """A matrix to write as [blocks, rows, lanes], and the bytes between its rows and columns."""

    to: int
    rows: int
    columns: int
    lanes: int
    down: int
    across: int


class Part(Record):
    """A kernel of the product, its record, and how far its results begin behind the first ones."""

    kernel: int
    record: int
    y: int


class Batch(Record):
    """Where the matrices of a batch are."""

    x: int
    right: int
    y: int


class ManyBatches(Record):
    """A table of ``Batch``, and how many it has."""

    batches: int
    count: int


class Batches(ManyBatches):
    """Tables of batches and parts, and how matrices are packed; turned left ones where needed."""

    parts: int
    part_count: int
    packing: int
    turning: int
    turned: int


M = TypeVar("M", bound=ManyBatches)


def parts_of(count: int, work: int, threads: int) -> list[tuple[int, int]]:
    """Cut batches of so many products each for threads, see ``ranges``."""
    return ranges(count, threads, -(-LEAST_PRODUCTS // max(work, 1)))


def part_of(record: M, begin: int, end: int, **fields: int) -> M:
    """Copy a record for some of its batches, with other contents of some fields."""
    place = record.batches + Batch.layout.itemsize * begin
    return record.replace(batches=place, count=end - begin, **fields)


_packing_at, _part_at = reader(Packing), reader(Part)
batch_at = reader(Batch)
"""Reads where the matrices of a batch are, see ``matrices``."""

_record_at = reader(FloatRecord)


def _of(part: sequence.Part) -> FloatRecord:
    assert isinstance(part.record, FloatRecord), "parts of a float layer have such records"
    return part.record


def _packing(to: int, rows: int, columns: int, lanes: int, steps: tuple[int, int]) -> Packing:
    down, across = steps
    return Packing(to=to, rows=rows, columns=columns, lanes=lanes, down=down, across=across)


def _steps(rows: int, columns: int, *, turned: bool) -> tuple[int, int]:
    """Return the bytes from row to row and from column to column of a matrix that may lie
    transposed.
    """
    return (4, 4 * rows) if turned else (4 * columns, 4)


def matrices(array: Array, size: int, batches: Sequence[int]) -> NDArray[np.int64]:
    """Return the address of every batch's matrix of ``size`` bytes, broadcast to all batches."""
    own = array.shape[:-2]
    count = int(np.prod(own))
    places = reach(array, size, turns(count, size)) + size * np.arange(count).reshape(own)
    return np.broadcast_to(places, batches).reshape(-1)


@jit.separate
def _pack(source: int, p: Packing) -> None:
    """Write a matrix [rows, columns] as [blocks, rows, lanes]."""
    to, rows, columns, lanes = p.to, p.rows, p.columns, p.lanes
    down, across = p.down >> 2, p.across >> 2
    for first in range(0, columns, lanes):
        count = min(lanes, columns - first)
        for row in range(rows):
            numbers, place = floats(source + 4 * (row * down + first * across)), floats(to)
            for i in range(count):
                place[i] = numbers[i * across]
            to += 4 * lanes


@jit.kernel
def _multiply(r: Batches) -> None:
    """Pack the right matrix of every batch, transpose the left one if needed, and run the parts."""
    packed = 0
    for number in range(r.count):
        batch = batch_at(r.batches, number)
        x = batch.x
        if batch.right != packed:
            _pack(batch.right, _packing_at(r.packing, 0))
            packed = batch.right
        if r.turning:
            _pack(x, _packing_at(r.turning, 0))
            x = r.turned
        for i in range(r.part_count):
            part = _part_at(r.parts, i)
            record = _record_at(part.record, 0)
            record.x, record.y = x, batch.y + part.y
            jit.call(part.kernel, part.record)


@portable(BatchMatMul, TensorType.FLOAT32)
def in_c(op: BatchMatMul, context: PortableContext) -> list[CCall]:
    """Call the product of floats."""
    del context
    return [CCall("luc_batch_matmul_float", matrices_in_c(op), (op.x, op.y), op.results)]


def matrices_in_c(op: BatchMatMul) -> dict[str, Field]:
    """Write the extents of matrices, and how far their elements are apart, for C."""
    x, y, z = op.x.dims, op.y.dims, op.results[0].dims
    depth, batches = x[-2 if op.adjoint_lhs else -1], z[:-2]
    held: dict[str, Field] = {
        "batches": math.prod(batches),
        "rows": z[-2],
        "depth": depth,
        "columns": z[-1],
        "x_row": 1 if op.adjoint_lhs else depth,
        "x_depth": z[-2] if op.adjoint_lhs else 1,
        "y_depth": 1 if op.adjoint_rhs else z[-1],
        "y_column": depth if op.adjoint_rhs else 1,
    }
    for name, dims in (("x_places", x), ("y_places", y)):
        size = math.prod(dims[-2:])
        places = size * np.arange(math.prod(dims[:-2])).reshape(dims[:-2])
        held[name] = np.broadcast_to(places, batches).reshape(-1)
    return {"matrices": held}
