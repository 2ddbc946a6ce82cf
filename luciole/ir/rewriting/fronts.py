"""Read constants that are added to or multiplied with what layers read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir.ops.elementwise_binary import Arithmetic
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.edits import is_float, is_private
from luciole.ir.rewriting.patterns import constant_of, with_constant
from luciole.ir.value import Value, element_count

Row = tuple[Value, NDArray[np.float64]]
"""What is computed, and a number for each element of a row that a layer multiplies."""

_MOST = 1 << 20
"""Elements of an input that are compared row by row."""


def channels_in_front(op: Arithmetic) -> Row | None:
    """Split an operator into what is computed and a constant with a number for each index of the
    last axis; None where it has no such constant, or something else reads its result, too.
    """
    pair = with_constant(op)
    data = None if pair is None else constant_of(pair[1])
    if pair is None or data is None or not is_private(op.output) or not is_float(op.output):
        return None
    value, count = pair[0], op.output.shape[-1] if op.output.shape else None
    if count is None or value.shape != op.output.shape:
        return None
    if data.size not in (1, count) or (data.size > 1 and data.shape[-1] != count):
        return None
    return value, np.broadcast_to(data.reshape(-1), (count,)).astype(np.float64)


def row_in_front(layer: FullyConnected, op: Arithmetic) -> Row | None:
    """Split the operator that a dense layer reads as ``channels_in_front`` does; the constant may
    have a number for each element of a row that is several axes.
    """
    columns = layer.weights.shape[-1] if layer.weights.shape else None
    row = channels_in_front(op)
    if row is not None and len(row[1]) == columns:
        return row
    pair = with_constant(op)
    data = None if pair is None else constant_of(pair[1])
    if pair is None or data is None or columns is None or not is_private(op.output):
        return None
    shape = op.output.dims
    if pair[0].shape != shape or element_count(shape) > _MOST or not is_float(op.output):
        return None
    rows = np.broadcast_to(data, shape).reshape(-1, columns).astype(np.float64)
    return (pair[0], rows[0]) if len(rows) and (rows == rows[0]).all() else None
