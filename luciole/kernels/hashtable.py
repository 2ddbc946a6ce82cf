"""HASHTABLE, HASHTABLE_FIND, HASHTABLE_IMPORT and HASHTABLE_SIZE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, ShapeError
from luciole.ir.ops import hashtable as ops
from luciole.ir.strings import OBJECTS, array_of, memory_of
from luciole.ir.value import shape_text
from luciole.kernels.core.meter import present
from luciole.kernels.core.registry import stateful
from luciole.kernels.core.state import State, Table

ENTRY = 160
"""Bytes that an entry takes in Python besides its text: two places and a number."""


@stateful(ops.Hashtable)
def hashtable(op: ops.Hashtable, state: State) -> Array:
    """Return the table's number."""
    for fault in op.verify():
        raise LucioleError(fault)
    state.tables.setdefault(op.table_id)
    return np.full(op.output.dims, op.table_id, np.int32)


@stateful(ops.HashtableImport)
def hashtable_import(
    op: ops.HashtableImport, state: State, table: Array, keys: Array, values: Array
) -> tuple[()]:
    """Fill a table that is not; nothing is returned."""
    number = _number(state, table)
    if keys.shape != values.shape:
        shapes = shape_text(keys.shape), shape_text(values.shape)
        raise ShapeError(f"keys are {shapes[0]} and values {shapes[1]}, both must be the same")
    if (keys.dtype == OBJECTS) == (values.dtype == OBJECTS):
        raise LucioleError("keys and values are of one type, one of them must be texts")
    if state.tables[number] is None:
        _count(keys if keys.dtype == OBJECTS else values)
        pairs = zip(reversed(keys.ravel().tolist()), reversed(values.ravel().tolist()), strict=True)
        state.tables[number] = Table(keys.dtype, values.dtype, dict(pairs))
    return ()


@stateful(ops.HashtableFind)
def hashtable_find(
    op: ops.HashtableFind, state: State, table: Array, keys: Array, default_value: Array
) -> Array:
    """Look up every key."""
    filled = _filled(state, table)
    if (keys.dtype, default_value.dtype) != (filled.keys, filled.values):
        raise LucioleError("keys or default_value are not of the table's types")
    if not default_value.size:
        raise ShapeError("default_value has no element")
    missing = default_value.ravel().tolist()[0]
    values = [filled.entries.get(key, missing) for key in keys.ravel().tolist()]
    if filled.values == OBJECTS:
        return array_of(values, keys.shape)
    return np.array(values, filled.values).reshape(keys.shape)


@stateful(ops.HashtableSize)
def hashtable_size(op: ops.HashtableSize, state: State, table: Array) -> Array:
    """Count the keys."""
    return np.array([len(_filled(state, table).entries)], np.int64)


def _number(state: State, table: Array) -> int:
    """Read the number of a table. Raises LucioleError where there is no such one."""
    if table.size != 1:
        raise LucioleError(f"the resource has {table.size} elements, 1 is needed")
    number = int(table.reshape(-1)[0])
    if number not in state.tables:
        raise LucioleError(f"there is no hash table {number}")
    return number


def _filled(state: State, table: Array) -> Table:
    number = _number(state, table)
    filled = state.tables[number]
    if filled is None:
        raise LucioleError(f"hash table {number} is read before it was filled")
    return filled


def _count(texts: Array) -> None:
    """Count the memory of a table's texts. Raises MemoryLimitError beyond the limit."""
    meter = present()
    if meter is not None:
        meter.hold(memory_of(texts) + ENTRY * texts.size)
