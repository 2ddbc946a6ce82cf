"""HDF5 files in ONE's layout: ``/value/<record>/<input index>``, typed or raw bytes.

The layout is that of ONE's compiler/dio-hdf5: record and input names are decimal numbers without
padding; an attribute ``rawData`` on ``/value`` says that the datasets hold bytes, as uint8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from luciole.files import replacing
from luciole.importers.hdf5 import Hdf5File, open_hdf5
from luciole.ir.dtypes import Array
from luciole.ir.value import element_count
from luciole.schema.printable import quoted
from luciole.tools.data.collecting import Rows, Stored, Wanted, collect, read_labels
from luciole.tools.data.errors import DataError, about
from luciole.tools.data.fitting import InputSpec
from luciole.tools.data.npy import PIECE

_TYPED = ("float32", "int32", "int64", "bool")
"""The element types that ONE reads from typed datasets."""


def read_hdf5(path: str, request: Wanted) -> Stored:
    """Read the records of a file in ONE's layout; labels from a dataset ``/labels``."""
    with open_hdf5(path) as file:
        total = len(_numbered(file, "/value", "records"))
        raw = "rawData" in file.attributes("/value")
        batches = _records(file, request.specs, request.count(total), raw)
        records = collect(request, batches, total)
        if not request.labels or not file.has("/labels"):
            return Stored(records, total)
        return Stored(records, total, read_labels(request, rows_of(file, "/labels"), total))


def rows_of(file: Hdf5File, path: str) -> Rows:
    """Open a dataset, of which nothing but type and shape has been read."""
    shape, dtype = file.dataset(path)

    def blocks(count: int) -> Iterator[Array]:
        step = max(1, PIECE // max(1, element_count(shape[1:]) * dtype.itemsize))
        for first in range(0, count, step):
            entries = min(step, count - first)
            yield file.read(path, dtype, (entries, *shape[1:]), first)

    return Rows(path, shape, dtype, blocks)


def _numbered(file: Hdf5File, group: str, what: str) -> list[str]:
    """Check the members' names, which must be 0, 1, ... up to their count."""
    names = file.members(group)
    expected = [str(i) for i in range(len(names))]
    missing = sorted(set(expected) - set(names), key=int)
    if missing:
        strange = min(set(names) - set(expected), default="one of them twice")
        raise DataError(
            f"{what} in {group!r} are named 0 to {len(names) - 1}: "
            f"{missing[0]!r} is missing, {quoted(strange)} is there"
        )
    return expected


def _records(
    file: Hdf5File, specs: Sequence[InputSpec], count: int, raw: bool
) -> Iterator[Sequence[Rows]]:
    for number in range(count):
        record = f"/value/{number}"
        names = _numbered(file, record, "inputs")
        if len(names) != len(specs):
            raise DataError(
                f"record {number} has {len(names)} inputs, the model {len(specs)}: "
                + ", ".join(repr(spec.name) for spec in specs)
            )
        make = _decoded if raw else _typed
        source = f"record {number}"
        yield [
            make(file, f"{record}/{name}", spec, source)
            for name, spec in zip(names, specs, strict=True)
        ]


def _typed(file: Hdf5File, path: str, spec: InputSpec, source: str) -> Rows:
    """Read a record of its own type and shape."""
    shape, dtype = file.dataset(path)

    def blocks(_: int) -> Iterator[Array]:
        yield file.read(path, dtype, shape, 0)[np.newaxis]

    return Rows(source, (1, *shape), dtype, blocks)


def _decoded(file: Hdf5File, path: str, spec: InputSpec, source: str) -> Rows:
    """Read a record that is stored as bytes."""
    shape, dtype = file.dataset(path)
    if dtype != np.uint8:
        raise DataError(f"raw data is stored as uint8, found {dtype} in {source}")
    try:
        extents = spec.check_bytes(element_count(shape))
    except DataError as error:
        raise DataError(f"{source}: {error}") from error

    def blocks(_: int) -> Iterator[Array]:
        yield spec.from_bytes(file.read(path, dtype, shape, 0))[np.newaxis]

    return Rows(source, (1, *extents), spec.dtype, blocks)


def write_hdf5(path: str, records: Mapping[str, Array] | Sequence[Array]) -> None:
    """Write records as ONE reads them: typed datasets, each a batch of one, bool as an enumeration;
    all as bytes where one is of a type that ONE reads as bytes alone.

    ``records`` has one array per input in the model's input order, first axis the records. The file
    appears whole or not at all. Raises DataError for counts that differ and for types that no model
    holds, LucioleError where the file cannot be written.
    """
    arrays = list(records.values() if isinstance(records, Mapping) else records)
    with about(path):
        count = _check_writable(arrays)
    with replacing(path) as file:
        _write(file, arrays, count)


def _check_writable(arrays: Sequence[Array]) -> int:
    if not arrays or any(array.ndim == 0 for array in arrays):
        raise DataError("needs at least one array whose first axis counts records")
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1:
        raise DataError(f"every input needs the same number of records, found {lengths}")
    for index, array in enumerate(arrays):
        if array.dtype.kind not in "biuf":
            raise DataError(f"input {index} is {array.dtype}: real numbers are needed")
    if lengths[0] < 1:
        raise DataError("holds no records")
    return lengths[0]


def _write(draft: BinaryIO, arrays: Sequence[Array], count: int) -> None:
    import h5py

    with h5py.File(draft, "w") as file:
        value = file.create_group("value")
        raw = any(array.dtype.name not in _TYPED for array in arrays)
        if raw:
            value.attrs["rawData"] = np.uint8(1)
        for number in range(count):
            record = value.create_group(str(number))
            for index, array in enumerate(arrays):
                data = array[number : number + 1]
                record.create_dataset(str(index), data=_bytes_of(data) if raw else data)


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
