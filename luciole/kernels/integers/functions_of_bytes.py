"""Functions of one tensor of bytes that several operators compute: what x and sigmoid(x) are
multiplied to is a function of x alone, and looked up.
"""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Op, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.elementwise_binary import Binary
from luciole.kernels.core.discovery import load_kernels_of
from luciole.kernels.core.evaluation import computed
from luciole.kernels.core.reasons import accepted
from luciole.kernels.elements.lookups import is_looked_up

_DEEPEST = 4
"""Operators from the tensor to the result, at the most."""


def table_of(op: Binary) -> tuple[int, Array] | None:
    """Return which operand (0 or 1) of an operator on bytes the other one is a function of, and the
    result for each byte [256]; None where it is of neither. Operators between are those that are
    looked up, and binary ones with single numbers.
    """
    for slot, (root, other) in enumerate(((op.x, op.y), (op.y, op.x))):
        if root.shape != op.output.shape or root.is_variable or other.is_constant:
            continue
        every = np.arange(256, dtype=np.uint8).view(NUMPY[root.dtype])
        table = accepted(_computed, op.output, {root: every}, _DEEPEST)
        if isinstance(table, np.ndarray):
            return slot, table
    return None


def _computed(value: Value, known: dict[Value, Array], depth: int) -> Array | None:
    """Compute a tensor for every byte of the ``known`` one, None where it is no function of it."""
    if value in known:
        return known[value]
    if value.data is not None:
        return value.data.reshape(1) if value.data.size == 1 else None
    op = None if value.producer is None else value.producer.op
    if op is None or not depth or not _is_function(op):
        return None
    operands: list[Array | None] = []
    for operand in op.operands:
        array = None if operand is None else _computed(operand, known, depth - 1)
        if array is None:
            return None
        operands.append(array)
    return computed(op, operands)[0]


def _is_function(op: Op) -> bool:
    load_kernels_of(type(op))
    return isinstance(op, Binary) or is_looked_up(op)
