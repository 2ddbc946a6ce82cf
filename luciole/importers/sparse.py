"""Sparse constants in recipes: as they are spelled out, and made from dense ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.importers.fillers import Bytes
from luciole.importers.recipe_fields import Fields, integers, members, message, table, word
from luciole.ir.dtypes import NUMPY, Array, unpack
from luciole.ir.errors import FormatError
from luciole.schema import tables
from luciole.schema.enums import DimensionType, TensorType
from luciole.schema.recipe import INDEX_VECTORS
from luciole.schema.table import SCALARS, TABLES, Table
from luciole.schema.textproto import Entry, Message


def sparsity(source: Message) -> tables.SparsityParameters:
    """The table behind a ``sparsity`` message."""
    found = members(source, "sparsity", "traversal_order", "block_map", "dim_metadata")
    return tables.SparsityParameters(
        traversal_order=_dimensions(found, "traversal_order"),
        block_map=_dimensions(found, "block_map"),
        dim_metadata=[_dimension(message(entry)) for entry in found["dim_metadata"]],
    )


def _dimensions(found: Fields, name: str) -> Array:
    entries = found[name]
    numbers = integers(members(message(entries[-1]), name, "dim"), "dim") if entries else []
    return np.array(numbers, np.int32)


def _dimension(source: Message) -> tables.DimensionMetadata:
    vectors = ("array_segments", "array_indices")
    found = members(source, "dim_metadata", "format", "dense_size", *vectors)
    plain = Message(source.line, [e for e in source if e.name not in vectors])
    result = table(tables.DimensionMetadata, plain, {})
    result.array_segments, result.array_indices = (_vector(found[name]) for name in vectors)
    return result


def _vector(entries: list[Entry]) -> Table | None:
    """Indices in the width that their ``type`` says."""
    if not entries:
        return None
    found: Mapping[str, list[Entry]] = members(message(entries[-1]), "indices", "dim", "type")
    name = word(found, "type") or "SparseIdxVecType_NONE"
    if name not in INDEX_VECTORS:
        known = ", ".join(INDEX_VECTORS)
        raise FormatError(f"line {entries[-1].line}: type {name} is none of {known}")
    kind = INDEX_VECTORS[name]
    if kind is None:
        return None
    cls = TABLES[kind]
    scalar = cls.fields[0].of
    return cls(values=np.array(integers(found, "dim", scalar), SCALARS[scalar]))


def sparse_rows(
    content: Bytes, dtype: TensorType, shape: Array, name: str
) -> tuple[Bytes, tables.SparsityParameters]:
    """A dense constant with only the values of its last axis that are not 0 (``make_sparse``)."""
    if not len(shape) or dtype not in NUMPY:
        raise FormatError(f"operand {name!r}: make_sparse takes axes and numbers")
    extents = tuple(shape.tolist())
    dense = unpack(content, dtype, extents)
    assert dense is not None
    rows = dense.reshape(int(np.prod(extents[:-1])), extents[-1])
    row, column = np.nonzero(rows)
    segments = np.searchsorted(row, np.arange(len(rows) + 1))
    last = tables.DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=tables.Int32Vector(values=segments.astype(np.int32)),
        array_indices=tables.Int32Vector(values=column.astype(np.int32)),
    )
    dimensions = [tables.DimensionMetadata(dense_size=extent) for extent in extents[:-1]]
    order = np.arange(len(extents), dtype=np.int32)
    params = tables.SparsityParameters(
        traversal_order=order, block_map=np.zeros(0, np.int32), dim_metadata=[*dimensions, last]
    )
    return rows[row, column].view(np.uint8), params
