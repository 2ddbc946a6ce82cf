"""HDF5 files in ONE's layout: ``/value/<record>/<input index>``, typed or raw bytes.

The layout is that of ONE's compiler/dio-hdf5: record and input names are decimal numbers without
padding; an attribute ``rawData`` on ``/value`` says that the datasets hold bytes, as uint8.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.tools.data.errors import DataError, about, damage_refused
from luciole.tools.data.fitting import InputSpec, Record, Stored, check_count, collect

_TYPED = ("float32", "int32", "int64", "bool")
"""The element types that ONE reads from typed datasets."""


def read_hdf5(path: str, specs: Sequence[InputSpec], limit: int | None) -> Stored:
    """The first ``limit`` records of a file in ONE's layout; labels from a dataset ``/labels``."""
    with _open(path) as file:
        value = _child(file, "value", "group")
        total = check_count(len(_numbered(value, "records")))
        count = total if limit is None else min(limit, total)
        with damage_refused("the attributes of /value"):
            raw = "rawData" in value.attrs
        records = collect(specs, _records(value, specs, count, raw), count)
        labels = _array(file, "labels") if "labels" in _keys(file) else None
    return Stored(records, total, labels)


def read_dataset(path: str, name: str) -> Array:
    """The contents of one dataset, say ``/labels``."""
    with _open(path) as file:
        return _array(file, name.strip("/"))


def has_dataset(path: str, name: str) -> bool:
    """Whether something is stored at a path inside the file."""
    with _open(path) as file, damage_refused("the file"):
        return name.strip("/") in file


def _open(path: str) -> Any:
    import h5py

    with damage_refused("the file"):
        return h5py.File(path, "r")


def _keys(group: Any) -> list[str]:
    with damage_refused(f"group {group.name!r}"):
        return list(group)


def _child(group: Any, name: str, kind: str) -> Any:
    """A member that must be a ``group`` or a ``dataset``."""
    import h5py

    kinds = {"group": h5py.Group, "dataset": h5py.Dataset}
    with damage_refused(f"{name!r} in {group.name!r}"):
        if name not in group:
            shown = ", ".join(map(repr, _keys(group)[:5])) or "nothing"
            raise DataError(f"no {kind} {name!r} in {group.name!r}, found {shown}")
        child = group[name]
    if not isinstance(child, kinds[kind]):
        raise DataError(f"{child.name!r} is no {kind}")
    return child


def _numbered(group: Any, what: str) -> list[str]:
    """The members' names, which must be 0, 1, ... up to their count."""
    found = _keys(group)
    wanted = [str(i) for i in range(len(found))]
    missing = sorted(set(wanted) - set(found), key=int)
    if missing:
        strange = min(set(found) - set(wanted))
        raise DataError(
            f"{what} in {group.name!r} are named 0 to {len(found) - 1}: "
            f"{missing[0]!r} is missing, {strange!r} is there"
        )
    return wanted


def _records(value: Any, specs: Sequence[InputSpec], count: int, raw: bool) -> Iterator[Record]:
    for number in range(count):
        record = _child(value, str(number), "group")
        names = _numbered(record, "inputs")
        if len(names) != len(specs):
            raise DataError(
                f"record {number} has {len(names)} inputs, the model {len(specs)}: "
                + ", ".join(repr(spec.name) for spec in specs)
            )
        arrays = [_array(record, name) for name in names]
        if raw:
            arrays = [_decode(spec, a, number) for spec, a in zip(specs, arrays, strict=True)]
        yield f"record {number}", arrays


def _array(group: Any, name: str) -> Array:
    dataset = _child(group, name, "dataset")
    with damage_refused(f"{dataset.name!r}"):
        if dataset.shape is None or dataset.dtype.kind not in "biufc":
            raise DataError(f"{dataset.name!r} holds no array of numbers")
        return np.asarray(dataset[()])


def _decode(spec: InputSpec, array: Array, number: int) -> Array:
    if array.dtype != np.uint8:
        raise DataError(f"raw data is stored as uint8, found {array.dtype} in record {number}")
    try:
        return spec.from_bytes(array.tobytes())
    except DataError as error:
        raise DataError(f"record {number}: {error}") from error


def write_hdf5(path: str, records: Mapping[str, Array] | Sequence[Array]) -> None:
    """Write records as ONE reads them: typed datasets, each a batch of one, bool as an enumeration.

    ``records`` has one array per input in the model's input order, first axis the records. The file
    appears whole or not at all. Raises DataError for counts that differ, for types that ONE does
    not read, and where the file cannot be written.
    """
    arrays = list(records.values() if isinstance(records, Mapping) else records)
    with about(path):
        count = _check_writable(arrays)
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write(temporary, arrays, count)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def _check_writable(arrays: Sequence[Array]) -> int:
    if not arrays or any(array.ndim == 0 for array in arrays):
        raise DataError("needs at least one array whose first axis counts records")
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) != 1:
        raise DataError(f"every input needs the same number of records, found {lengths}")
    for index, array in enumerate(arrays):
        if array.dtype.name not in _TYPED:
            raise DataError(f"input {index} is {array.dtype}, ONE reads {', '.join(_TYPED)}")
    return check_count(lengths[0])


def _write(path: Path, arrays: Sequence[Array], count: int) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        value = file.create_group("value")
        for number in range(count):
            record = value.create_group(str(number))
            for index, array in enumerate(arrays):
                record.create_dataset(str(index), data=array[number : number + 1])
