"""Records and labels from arrays in files: checked and counted first, then read bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.value import element_count, shape_text
from luciole.schema.printable import shorten
from luciole.tools.data.bounds import Room
from luciole.tools.data.errors import DataError
from luciole.tools.data.fitting import InputSpec
from luciole.tools.data.placing import fill, place_for


class Rows(NamedTuple):
    """An array in a file, of which nothing but type and shape has been read; its first axis counts
    records.

    ``blocks`` reads as many of them as are asked for, some at a time. ``source`` says what it is in
    a refusal, where ``numbered`` is whether records need a number besides.
    """

    source: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[Array]]
    numbered: bool = False


class Wanted(NamedTuple):
    """A request to a source: records for these inputs, the first ``limit`` of them, in this room;
    and whether to look for labels beside them.
    """

    specs: Sequence[InputSpec]
    limit: int | None
    room: Room
    allow_outside: bool = False
    labels: bool = True

    def count(self, total: int) -> int:
        """Count the records to read of ``total`` ones. Raises DataError when there are none."""
        if total < 1:
            raise DataError("holds no records")
        return total if self.limit is None else min(self.limit, total)


class Stored(NamedTuple):
    """The contents of a source: fitted records by input name, how many it holds in all, its
    labels.
    """

    records: dict[str, Array]
    total: int
    labels: Array | None = None


def collect(request: Wanted, batches: Iterable[Sequence[Rows]], total: int) -> dict[str, Array]:
    """Fit the requested ones of ``total`` records into one array per input.

    ``batches`` have an array of as many records for each input. Raises DataError for
    records that do not fit the model or the room, before they are read.
    """
    fed: dict[str, Array] = {}
    done, count = 0, request.count(total)
    for batch in batches:
        entries = min(batch[0].shape[0], count - done)
        for spec, rows in zip(request.specs, batch, strict=True):
            extents = spec.check(rows.shape, rows.dtype, rows.source)
            if spec.name not in fed:
                size = element_count(extents) * spec.item_bytes(rows.dtype)
                request.room.take(count * max(1, size), f"{count} records of input {spec.name!r}")
                fed[spec.name] = place_for((count, *extents), spec.dtype)
            whole = fed[spec.name]
            _check_same(extents, whole.shape[1:], spec, rows.source)
            _fill(whole[done : done + entries], spec, rows)
        done += entries
    return fed


def _fill(place: Array, spec: InputSpec, rows: Rows) -> None:
    first = 0
    for block in rows.blocks(len(place)):
        fitted = spec.fit(block, rows.source, first if rows.numbered else None)
        fill(place[first : first + len(block)], fitted)
        first += len(block)


def _check_same(
    extents: tuple[int, ...], first: tuple[int, ...], spec: InputSpec, source: str
) -> None:
    if extents != first:
        raise DataError(
            f"input {spec.name!r}: all records need one shape, "
            f"found {shape_text(extents)} in {source} after {shape_text(first)}"
        )


def read_labels(request: Wanted, rows: Rows, total: int) -> Array:
    """Read the labels of the requested records.

    Raises DataError unless the array has numbers, one entry for each of the ``total`` records, and
    those that are read are finite.
    """
    if rows.dtype.kind not in "biuf":
        raise DataError(f"labels are numbers, found {shorten(str(rows.dtype))}")
    if not rows.shape or rows.shape[0] != total:
        shape = shorten(shape_text(rows.shape))
        raise DataError(f"{total} records need {total} labels, found an array of shape {shape}")
    count = request.count(total)
    size = element_count(rows.shape[1:]) * rows.dtype.itemsize
    request.room.take(count * max(1, size), f"{count} labels")
    labels = np.empty((count, *rows.shape[1:]), rows.dtype.newbyteorder("="))
    first = 0
    for block in rows.blocks(count):
        labels[first : first + len(block)] = block
        first += len(block)
    return _check_finite(labels)


def _check_finite(labels: Array) -> Array:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        first = np.argwhere(~np.isfinite(labels))[0]
        raise DataError(f"label {first[0]} is {labels[tuple(first)]}: not finite")
    return labels
