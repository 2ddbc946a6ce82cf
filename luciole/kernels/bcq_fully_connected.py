"""BCQ_FULLY_CONNECTED kernels: a reference on signs, and one that looks up sums of inputs.

Every byte of signs is looked up in a table of the 256 sums of 8 inputs, as in Jeon et al., BiQGEMM:
Matrix Multiplication with Lookup Table For Binary-Coding-based Quantized DNNs, 2020.
"""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.learned_levels import WORD
from luciole.ir.ops.activations import APPLIED, LIMITS
from luciole.ir.ops.bcq_fully_connected import (
    BCQFullyConnected,
    clusters_of,
    matrix_rows,
    signs,
)
from luciole.ir.rules import agree
from luciole.kernels import jit
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.jit import Pointer, Single, floats, words
from luciole.kernels.jit.record import Record
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.floats import activated, as_limits
from luciole.kernels.portable.images import cut_off
from luciole.schema.enums import ActivationFunctionType

_TANH = int(ActivationFunctionType.TANH)
_LIMITS = tuple(LIMITS.get(activation, (-np.inf, np.inf)) for activation in ActivationFunctionType)
"""Where an activation cuts off, by its number in the file."""
_TABLE = 256
"""Entries of a table: one for each byte."""


class BCQRecord(Record):
    """Columns of an operand and a result, the packed weights, and places for tables and sums."""

    x: int
    y: int
    bits: int
    scales: int
    rows: int
    bias: int
    tables: int
    sums: int
    totals: int
    count: int
    """Words of a plane."""
    planes: int
    outputs: int
    batch: int
    activation: int


@reference(BCQFullyConnected, TensorType.FLOAT32)
def bcq_fully_connected(
    op: BCQFullyConnected,
    x: Array,
    scales: Array,
    binary: Array,
    bias: Array | None,
    clusters: Array,
) -> Array:
    """Multiply the signs by the inputs, then scale and add up row by row: in float64, so that the
    result can judge the compiled kernel. Raises ShapeError where computed clusters have other rows
    than the bias.
    """
    groups = clusters_of(clusters, len(binary))
    rows = sum(c.size for c in groups)
    agree("rows", None if bias is None else len(bias), rows, "bias", "weights_clusters")
    sums = signs(binary, op.weights_hidden_size) @ x
    y = np.zeros((rows, x.shape[1]))
    np.add.at(y, matrix_rows(groups), sums * scales[:, None])
    y = y if bias is None else y + bias[:, None]
    return activate(y.astype(np.float32), op.activation)


@native(BCQFullyConnected, TensorType.FLOAT32)
def build(op: BCQFullyConnected, context: Context) -> NativeStep | None:
    """Lay the bits out by word, so that one word's four tables serve all rows while they are in the
    nearest cache.

    The loop trusts what is checked before it: bits, scales, bias and clusters are constants of the
    sizes that the shape rule asked for, every plane belongs to a row of the result, and the result
    is float32 (a file may call it something else).
    """
    x, scales, binary, bias, clusters = context.operands
    constant = all(value is None or value.is_constant for value in op.operands[1:])
    if x is None or scales is None or binary is None or clusters is None or not constant:
        return None
    y = context.results[0]
    if op.activation not in APPLIED or y.dtype != np.float32:
        return None
    groups = clusters_of(clusters, len(binary))
    if sum(c.size for c in groups) != len(y):  # the reference says what is wrong
        return None
    rows = matrix_rows(groups)
    memory, (planes, count), (outputs, batch) = Memory(), binary.shape, y.shape
    record = BCQRecord(
        x=reach(x, 4 * WORD * count * batch),
        y=reach(y, 4 * outputs * batch),
        bits=memory.keep(np.array(binary.T, np.int32), count, planes),
        scales=memory.keep(np.array(scales, np.float32), planes),
        rows=memory.keep(rows.astype(np.int32), planes),
        bias=memory.scratch(outputs) if bias is None else memory.keep(bias, outputs),
        tables=memory.scratch(WORD // 8 * _TABLE),
        sums=memory.scratch(planes),
        totals=memory.scratch(outputs),
        count=count,
        planes=planes,
        outputs=outputs,
        batch=batch,
        activation=int(op.activation),
    )
    return memory.step(_look_up.address, record)


@portable(BCQFullyConnected, TensorType.FLOAT32)
def in_c(op: BCQFullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer of float inputs, and an activation that does not only cut off."""
    binary = context.constant(op.weights_binary)
    groups = clusters_of(context.constant(op.weights_clusters), len(binary))
    (planes, count), (outputs, batch) = binary.shape, op.output.dims
    if sum(c.size for c in groups) != outputs:
        raise UnsupportedError(f"its clusters do not have {outputs} rows")
    fields: dict[str, Field] = {
        "outputs": outputs,
        "batch": batch,
        "words": count,
        "planes": planes,
        "bits": np.array(binary.T, np.int32).view(np.uint32),
        "scales": context.constant(op.weights_scales),
        "rows": matrix_rows(groups),
        "bias": context.optional(op.bias),
    }
    within, after = as_limits(op.activation)
    fields |= cut_off(within)
    scratch = 4 * (8 * 16 + planes + planes % 2)

    def layer(y: Value) -> CCall:
        return CCall("luc_bcq_fully_connected", fields, (op.input,), (y,), scratch)

    return activated(after, op.output, layer)


@jit.separate
def _fill(table: Pointer, x: Pointer, stride: int) -> None:
    """Compute for every byte the sum of 8 inputs ``x[i * stride]``, each + where bit i is set, else
    -.

    Doubled input by input: nothing is subtracted that was added, so infinities stay what they are.
    """
    table[0] = np.float32(0)
    for i in range(8):
        size = 1 << i
        v = x[i * stride]
        for byte in range(size):
            table[size + byte] = table[byte] + v
            table[byte] -= v


@jit.separate
def _add_words(bits: Pointer, planes: int, tables: Pointer, sums: Pointer) -> None:
    """Add to the sum of every plane the numbers of the four bytes of its word."""
    for p in range(planes):
        word = bits[p]
        low = tables[word & 0xFF] + tables[256 + (word >> 8 & 0xFF)]
        high = tables[512 + (word >> 16 & 0xFF)] + tables[768 + (word >> 24)]
        sums[p] += low + high


@jit.separate
def _clamp(y: Pointer, count: int, low: Single, high: Single) -> None:
    """Cut numbers off outside of two limits."""
    for i in range(count):
        v = y[i]
        if v < low:
            y[i] = low
        elif v > high:
            y[i] = high


@jit.separate
def _activate(y: Pointer, count: int, activation: int) -> None:
    """Apply a fused activation, numbered as in the file."""
    low, high = _LIMITS[activation]
    _clamp(y, count, np.float32(low), np.float32(high))
    if activation == _TANH:
        for i in range(count):
            y[i] = np.float32(math.tanh(y[i]))


@jit.kernel
def _look_up(r: BCQRecord) -> None:
    """Compute y_ob = activation(sum_k a_ko sum_j (+-x_jb) + bias_o), one column b after the
    other.
    """
    scales, rows, bias = floats(r.scales), words(r.rows), floats(r.bias)
    tables, sums, totals = floats(r.tables), floats(r.sums), floats(r.totals)
    count, planes, outputs, batch = r.count, r.planes, r.outputs, r.batch
    y = floats(r.y)
    for b in range(batch):
        for p in range(planes):
            sums[p] = np.float32(0)
        for w in range(count):
            for byte in range(4):
                x = floats(r.x + 4 * ((32 * w + 8 * byte) * batch + b))
                _fill(floats(r.tables + 1024 * byte), x, batch)
            _add_words(words(r.bits + 4 * w * planes), planes, tables, sums)
        for o in range(outputs):
            totals[o] = bias[o]
        for p in range(planes):
            totals[rows[p]] += scales[p] * sums[p]
        _activate(totals, outputs, r.activation)
        for o in range(outputs):
            y[o * batch + b] = totals[o]
