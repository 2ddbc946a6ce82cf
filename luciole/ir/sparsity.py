"""Sparse constants: all their elements from those that the file holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import dtypes
from luciole.ir.dtypes import Array
from luciole.ir.errors import GraphError
from luciole.ir.value import Value, element_count, impossible, shape_text
from luciole.schema.enums import DimensionType
from luciole.schema.table import Table
from luciole.schema.tables import (
    DimensionMetadata,
    Int32Vector,
    SparsityParameters,
    Uint8Vector,
    Uint16Vector,
)

Numbers = NDArray[np.int64]

MOST_BYTES = 4 << 30
"""A few bytes of a file can stand for any number of zeros."""


@dataclass(frozen=True)
class Level:
    """One dimension of the traversal: ``step`` elements of the tensor's ``axis`` from index to
    index. Dense ones have all indices below ``extent``; compressed ones those of ``indices`` from
    segments[i] to segments[i + 1] below the place i of the level before.
    """

    axis: int
    step: int
    extent: int
    segments: Numbers | None
    indices: Numbers | None

    def places(self, before: int) -> int:
        """Count the places below ``before`` places of the level before."""
        return before * self.extent if self.indices is None else len(self.indices)


def dense(value: Value) -> Array:
    """Decode a sparse constant into a fresh array of all its elements.

    The format is TFLite's (TACO's): the tensor's dimensions, then those of blocks in them, each in
    the order in which they are traversed. Raises GraphError for what does not make up the tensor.
    """
    try:
        _check_size(value)
        levels, count = _layout(value)
    except _FaultError as fault:
        raise GraphError(f"sparse tensor {value.name!r}: {fault}") from None
    values = dtypes.unpack(_raw(value), value.dtype, (count,))
    assert values is not None  # else there is no byte count
    result = np.zeros(value.dims, values.dtype)
    if count:
        result[_coordinates(levels, len(value.dims))] = values
    return result


def fault(value: Value) -> str | None:
    """Return why a sparse constant's elements do not make up the tensor, None where they do."""
    try:
        _layout(value)
    except _FaultError as error:
        return str(error)
    return None


class _FaultError(Exception):
    """A table is damaged; the sentence says where."""


def _raw(value: Value) -> NDArray[np.uint8]:
    raw = value.buffer.data if value.buffer is not None else None
    return np.empty(0, np.uint8) if raw is None else raw


def _layout(value: Value) -> tuple[list[Level], int]:
    """Arrange the dimensions as they are traversed, and count the values that the buffer holds."""
    assert value.sparsity is not None
    reason = impossible(value.dims)
    if reason is not None:
        raise _FaultError(f"it has {reason}")
    levels = _levels(value.sparsity, value.dims)
    count = _count(levels) if element_count(value.dims) else 0
    needed, held = dtypes.byte_count(value.dtype, count), len(_raw(value))
    if needed is None:
        raise _FaultError(f"values of {value.dtype.name} have no array form")
    if needed != held:
        raise _FaultError(f"{count} values are listed, the buffer has {held} bytes")
    return levels, count


def _check_size(value: Value) -> None:
    whole = dtypes.array_bytes(value.dtype, element_count(value.dims))
    if whole is not None and whole > MOST_BYTES:
        raise _FaultError(f"all elements would take {whole} bytes, {MOST_BYTES} are allowed")


def _levels(parameters: SparsityParameters, shape: tuple[int, ...]) -> list[Level]:
    """Arrange the dimensions as they are traversed, each of which fits the tensor."""
    order, blocks = (_listed(a) for a in (parameters.traversal_order, parameters.block_map))
    metadata, rank = parameters.dim_metadata or [], len(shape)
    if not rank:
        raise _FaultError("a tensor without axes has no zeros to leave out")
    axes = [*range(rank), *range(rank, rank + len(blocks))]
    if sorted(order[:rank]) + sorted(order[rank:]) != axes or len(metadata) != len(axes):
        raise _FaultError(
            f"traversal_order is {order}, with {len(metadata)} dimensions of {len(axes)}"
        )
    if len(set(blocks)) != len(blocks) or not set(blocks) <= set(range(rank)):
        raise _FaultError(f"block_map is {blocks}, the tensor has {rank} axes")
    inner = {
        blocks[i - rank]: table.dense_size
        for i, table in zip(order, metadata, strict=True)
        if i >= rank
    }
    result = []
    for i, table in zip(order, metadata, strict=True):
        axis = i if i < rank else blocks[i - rank]
        block = inner.get(axis, 1)
        if block < 1 or shape[axis] % block:
            raise _FaultError(
                f"a block has {block} elements along axis {axis} of {shape_text(shape)}"
            )
        extent, step = (shape[axis] // block, block) if i < rank else (block, 1)
        result.append(_level(table, axis, step, extent))
    return result


def _listed(array: Array | None) -> list[int]:
    return [] if array is None else [int(n) for n in array]


def _level(table: DimensionMetadata, axis: int, step: int, extent: int) -> Level:
    if table.format == DimensionType.DENSE:
        if table.dense_size != extent:
            raise _FaultError(f"axis {axis} has {table.dense_size} indices, {extent} are needed")
        return Level(axis, step, extent, None, None)
    segments, indices = _vector(table.array_segments), _vector(table.array_indices)
    if not len(segments) or segments[0] != 0 or segments[-1] != len(indices):
        raise _FaultError(f"the segments of axis {axis} do not cover its {len(indices)} indices")
    if (segments[1:] < segments[:-1]).any():
        raise _FaultError(f"the segments of axis {axis} go back")
    if len(indices) and not 0 <= indices.min() <= indices.max() < extent:
        raise _FaultError(f"an index of axis {axis} is none of 0 to {extent - 1}")
    return Level(axis, step, extent, segments, indices)


def _vector(table: Table | None) -> Numbers:
    values = table.values if isinstance(table, Int32Vector | Uint16Vector | Uint8Vector) else None
    return np.zeros(0, np.int64) if values is None else np.asarray(values, np.int64)


def _count(levels: Sequence[Level]) -> int:
    """Count the values. Refuses segments that do not fit the level before, so that nothing becomes
    larger than what the file lists.
    """
    places = 1
    for level in levels:
        if level.segments is not None and len(level.segments) != places + 1:
            raise _FaultError(
                f"axis {level.axis} has {len(level.segments)} segment ends, {places + 1} are needed"
            )
        places = level.places(places)
    return places


def _coordinates(levels: Sequence[Level], rank: int) -> tuple[Numbers, ...]:
    """Find where each value lies, an array for each axis."""
    at = np.zeros((rank, 1), np.int64)
    for level in levels:
        if level.segments is None or level.indices is None:
            at = np.repeat(at, level.extent, axis=1)
            indices = np.tile(np.arange(level.extent), at.shape[1] // max(level.extent, 1))
        else:
            at, indices = np.repeat(at, np.diff(level.segments), axis=1), level.indices
        at[level.axis] += indices * level.step
    return tuple(at)
