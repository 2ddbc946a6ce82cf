"""BATCH_MATMUL kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.quantization import per_tensor
from luciole.kernels import jit
from luciole.kernels.integers.hybrid import of_rows, weight_scale
from luciole.kernels.integers.int8_rescale import Rescaling, centred
from luciole.kernels.jit import Record, floats, longs
from luciole.kernels.layers.float_layer import WEIGHTS, Geometry, Layer, X, Y, fits
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.schema.enums import ActivationFunctionType

NONE = ActivationFunctionType.NONE


@reference(BatchMatMul, TensorType.FLOAT32)
def batch_matmul(op: BatchMatMul, x: Array, y: Array) -> Array:
    """One matrix product per batch."""
    left = x.swapaxes(-1, -2) if op.adjoint_lhs else x
    right = y.swapaxes(-1, -2) if op.adjoint_rhs else y
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(left, right))


@reference(BatchMatMul, TensorType.INT8, TensorType.INT16)
def batch_matmul_integer(op: BatchMatMul, x: Array, y: Array) -> Array:
    """Quantized matrices of one scale each: sums are integers."""
    per_tensor(op.y, "the second matrix")  # which may not have a scale for each column
    to = Rescaling.of(op.x, op.y, op.output, 0, NONE, single=True, any_zero=True)
    sums = batch_matmul(op, centred(x, to.input_zero), centred(y, to.weights_zero))
    return to.convolved(sums, None, None)


@reference(BatchMatMul, (TensorType.FLOAT32, TensorType.INT8))
def batch_matmul_hybrid(op: BatchMatMul, x: Array, y: Array) -> Array:
    """Integers under float activations: each row is quantized, sums are integers, as in TFLite."""
    scale = weight_scale(op.y)
    left = x.swapaxes(-1, -2) if op.adjoint_lhs else x
    rows = np.ascontiguousarray(left).reshape(math.prod(left.shape[:-1]), left.shape[-1])
    quantized, scales = of_rows(rows, asymmetric=op.asymmetric_quantize_inputs)
    right = y.swapaxes(-1, -2) if op.adjoint_rhs else y
    sums = np.matmul(quantized.reshape(left.shape), right.astype(np.float64)).astype(np.float32)
    return np.asarray(sums * (scales * scale).reshape(*left.shape[:-1], 1))


@native(BatchMatMul, TensorType.FLOAT32)
def build(op: BatchMatMul, context: Context) -> NativeStep | None:
    """Rows of the left matrix are the pixels of a convolution whose weights are the right one."""
    left, right = context.operands
    (y,) = context.results
    if left is None or right is None or not fits(NONE, left, y):
        return None
    *_, rows, columns = y.shape
    depth = left.size // int(np.prod(left.shape[:-2])) // rows
    if op.y.is_constant and right.size == depth * columns and not op.adjoint_lhs:
        weights = right.reshape(columns, depth) if op.adjoint_rhs else right.reshape(depth, -1).T
        layer = Layer(Geometry.of_rows(left.size // depth, depth), NONE, left, y)
        return layer.convolution(weights[None, :, None], None)
    return _with_any_right(op, left, right, y, depth)


def _with_any_right(
    op: BatchMatMul, left: Array, right: Array, y: Array, depth: int
) -> NativeStep | None:
    """Pack the right matrix of each batch when it is there, then multiply."""
    *batches, rows, columns = y.shape
    layer = Layer(Geometry.of_rows(rows, depth), NONE, left, y)
    step = layer.convolution(np.zeros((1, columns, 1, depth), np.float32), None)
    memory, weights = layer.memory, min(int(part.record[WEIGHTS]) for part in layer.parts)
    turned = memory.scratch(rows, depth) if op.adjoint_lhs else 0
    across = _steps(depth, columns, turned=op.adjoint_rhs)
    packing = memory.record(weights, depth, columns, layer.lanes, *across)
    turning = memory.record(turned, rows, depth, depth, *_steps(rows, depth, turned=True))
    moves = [int(part.record[Y]) - y.ctypes.data for part in layer.parts]
    parts = [
        (part.address, part.record.ctypes.data, move)
        for part, move in zip(layer.parts, moves, strict=True)
    ]
    table = np.stack([_places(array, batches) for array in (left, right, y)], 1)
    tables = (memory.keep(table), len(table), memory.keep(np.array(parts, np.int64)), len(parts))
    record = np.array([*tables, packing, turning if op.adjoint_lhs else 0, turned], np.int64)
    return NativeStep(_multiply.address, record, (*step.owns, *memory.arrays))


def _steps(rows: int, columns: int, *, turned: bool) -> tuple[int, int]:
    """Bytes from row to row and from column to column of a matrix that may lie transposed."""
    return (4, 4 * rows) if turned else (4 * columns, 4)


def _places(array: Array, batches: list[int]) -> NDArray[np.int64]:
    """The address of each batch's matrix, stretched to all batches."""
    own = array.shape[:-2]
    size = array.strides[-2] * array.shape[-2] if array.size else 0
    places = array.ctypes.data + size * np.arange(int(np.prod(own))).reshape(own)
    return np.broadcast_to(places, batches).reshape(-1)


@jit.inline
def _pack(source: Any, p: Record) -> None:
    """Write a matrix [rows, columns] as [blocks, rows, lanes]."""
    to, rows, columns, lanes, down, across = p[0], p[1], p[2], p[3], p[4] >> 2, p[5] >> 2
    for first in range(0, columns, lanes):
        count = min(lanes, columns - first)
        for row in range(rows):
            given, place = floats(source + 4 * (row * down + first * across)), floats(to)
            for i in range(count):
                place[i] = given[i * across]
            to += 4 * lanes


@jit.kernel
def _multiply(r: Record) -> None:
    """Every batch: pack the right matrix, turn the left one if needed, run the parts."""
    packed = 0
    for batch in range(r[1]):
        places = longs(r[0] + 24 * batch)
        x, right, y = places[0], places[1], places[2]
        if right != packed:
            _pack(right, longs(r[4]))
            packed = right
        if r[5]:
            _pack(x, longs(r[5]))
            x = r[6]
        for i in range(r[3]):
            part = longs(r[2] + 24 * i)
            longs(part[1])[X] = x
            longs(part[1])[Y] = y + part[2]
            jit.call(part[0], part[1])
