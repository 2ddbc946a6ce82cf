"""Sparse constants in recipes: as they are spelled out, and made from dense ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.importers.recipe.fields import Fields, integers, members, message, table, word
from luciole.importers.recipe.fillers import Bytes, check_size
from luciole.ir.dtypes import NUMPY, Array
from luciole.ir.errors import FormatError
from luciole.ir.value import element_count
from luciole.schema import tables
from luciole.schema.enums import DimensionType, TensorType
from luciole.schema.printable import quoted, shorten
from luciole.schema.recipe import INDEX_VECTORS
from luciole.schema.table import SCALARS, TABLES, Table
from luciole.schema.textproto import Entry, Message


def sparsity(source: Message) -> tables.SparsityParameters:
    """Read the table behind a ``sparsity`` message."""
    fields = members(source, "sparsity", "traversal_order", "block_map", "dim_metadata")
    return tables.SparsityParameters(
        traversal_order=_dimensions(fields, "traversal_order"),
        block_map=_dimensions(fields, "block_map"),
        dim_metadata=[_dimension(message(entry)) for entry in fields["dim_metadata"]],
    )


def _dimensions(fields: Fields, name: str) -> Array:
    entries = fields[name]
    numbers = integers(members(message(entries[-1]), name, "dim"), "dim") if entries else []
    return np.array(numbers, np.int32)


def _dimension(source: Message) -> tables.DimensionMetadata:
    segments, indices = "array_segments", "array_indices"
    fields = members(source, "dim_metadata", "format", "dense_size", segments, indices)
    plain = Message(source.line, [e for e in source if e.name not in (segments, indices)])
    result = table(tables.DimensionMetadata, plain, {})
    result.array_segments = _vector(fields[segments])
    result.array_indices = _vector(fields[indices])
    return result


def _vector(entries: list[Entry]) -> Table | None:
    """Write indices in the width that their ``type`` says."""
    if not entries:
        return None
    fields: Mapping[str, list[Entry]] = members(message(entries[-1]), "indices", "dim", "type")
    name = word(fields, "type") or "SparseIdxVecType_NONE"
    if name not in INDEX_VECTORS:
        known = ", ".join(INDEX_VECTORS)
        raise FormatError(f"line {entries[-1].line}: type {shorten(name)} is none of {known}")
    kind = INDEX_VECTORS[name]
    if kind is None:
        return None
    cls = TABLES[kind]
    scalar = cls.fields[0].of
    return cls(values=np.array(integers(fields, "dim", scalar), SCALARS[scalar]))


_BLOCK = 2**20
"""Elements that are looked at together: indices of all of them would be many times as large."""


def sparse_rows(
    content: Bytes, dtype: TensorType, shape: Array, name: str, limit: int
) -> tuple[Bytes, tables.SparsityParameters]:
    """Compress a dense constant to the values of its last axis that are not 0 (``make_sparse``).

    Raises FormatError where this would take more than ``limit`` bytes.
    """
    if not len(shape) or dtype not in NUMPY:
        raise FormatError(f"operand {quoted(name)}: make_sparse takes axes and numbers")
    flat, extents = content.view(NUMPY[dtype]), tuple(shape.tolist())
    rows, count = element_count(extents[:-1]), int(np.count_nonzero(flat))
    check_size("rows and values", 4 * (rows + 1) + count * (flat.itemsize + 4), limit)
    values, columns = np.empty(count, flat.dtype), np.empty(count, np.int32)
    segments, filled = np.zeros(rows + 1, np.int32), 0
    for start in range(0, len(flat), _BLOCK):
        places = start + np.flatnonzero(flat[start : start + _BLOCK])
        part = slice(filled, filled := filled + len(places))
        values[part], columns[part] = flat[places], places % extents[-1]
        np.add.at(segments, 1 + places // extents[-1], 1)
    np.cumsum(segments, out=segments)
    last = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=tables.Int32Vector(values=segments),
        array_indices=tables.Int32Vector(values=columns),
    )
    dimensions = [tables.DimensionMetadata(dense_size=extent) for extent in extents[:-1]]
    order = np.arange(len(extents), dtype=np.int32)
    params = tables.SparsityParameters(
        traversal_order=order, block_map=np.zeros(0, np.int32), dim_metadata=[*dimensions, last]
    )
    return values.view(np.uint8), params
