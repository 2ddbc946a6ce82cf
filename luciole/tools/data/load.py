"""Read calibration or evaluation data: find out what a path holds, its inputs and its labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from luciole.importers.hdf5 import open_hdf5
from luciole.interpreter.samples import release
from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.strings import OBJECTS
from luciole.ir.value import shape_text
from luciole.schema.printable import all_quoted
from luciole.tools.common.apart import EACH
from luciole.tools.data import hdf5, npz, raw_files
from luciole.tools.data.bounds import Bounds, Room, open_file
from luciole.tools.data.collecting import Rows, Stored, Wanted, read_labels
from luciole.tools.data.errors import AskedError, DataError, about
from luciole.tools.data.fitting import input_specs
from luciole.tools.data.npy import MAGIC, PIECE
from luciole.tools.data.preprocess import transforms_of
from luciole.tools.data.random_records import random_count, read_random

DEFAULT_BOUNDS = Bounds()
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HDF5_OFFSETS = (0, 512, 1024, 2048)
_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", MAGIC: "npy"}
_EXTENSIONS = {".h5": "HDF5", ".hdf5": "HDF5", ".npz": ".npz", ".npy": ".npy"}
RAW = (".raw", ".bin")
"""Extensions of files that are nothing but the bytes of records."""


@dataclass(frozen=True, eq=False)
class Data:
    """Records ready to be fed: per input name ``[records, *per-record shape]`` of its dtype.

    For an input whose first axis is 1 or unknown, ``records[name][i : i + b]`` is a batch of ``b``.
    An input without such an axis (``has_batch_axis``) takes ``records[name][i]``, whole.
    """

    records: dict[str, Array]
    labels: Array | None = None

    @property
    def count(self) -> int:
        """Number of records."""
        return len(next(iter(self.records.values())))

    def first(self, count: int) -> Data:
        """Keep the first ``count`` records."""
        labels = None if self.labels is None else self.labels[:count]
        return Data({name: array[:count] for name, array in self.records.items()}, labels)

    def summary(self) -> list[str]:
        """Write one line per input: dtype, shape, minimum, maximum and mean of what will be fed."""
        return [summary_line(name, array) for name, array in self.records.items()]


def load_data(
    path: str,
    graph: Graph,
    *,
    limit: int | None = None,
    preprocess: str | None = None,
    array: str | None = None,
    labels: str | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Data:
    """Read the first ``limit`` records of a file or folder as a graph's inputs take them.

    ``path``: HDF5 in ONE's layout, .npz, .npy, a folder or a list of record files, told by content,
    the bytes of one record after the other (.raw, .bin), those of one record in a file for each
    input (``each:PREFIX``), or ``random:N``, N random records.
    ``array``: which array of an .npz is the input; ``FILE:ARRAY`` as path says the same.
    ``preprocess``: arithmetic in ``x`` for real numbers, e.g. ``x/255``; ``none`` for nothing; for
    one input by name ``image=x/255; mask=none``.
    ``labels``: an array of the same file, or ``FILE.npy``, ``FILE.npz:ARRAY`` or
    ``FILE.h5:/DATASET``; without it, what the file itself has beside the records.
    ``bounds``: what records and labels may take in memory, and whether lists may name files that
    are not below their folder. Of other records than the first ``limit`` nothing is kept.

    uint8 and float64 become float32 for a float32 input, and they and float32 are quantized for a
    quantized one, whose own type is taken as what it stores (uint8 unless it is preprocessed);
    nothing else is converted. Raises DataError, which begins with the file's name, for all that
    cannot be read or does not fit.
    """
    if limit is not None and limit < 1:
        raise AskedError(f"limit is {limit}, at least 1 record is needed")
    specs = input_specs(graph, () if preprocess is None else transforms_of(preprocess, graph))
    file, named = _split_name(path)
    if named is not None and array not in (None, named):
        raise DataError(f"{path}: names array {named!r}, but array {array!r} is asked for")
    room = Room(bounds.data_limit)
    request = Wanted(specs, limit, room, bounds.allow_outside, labels is None)
    with about(file):
        stored = _read(file, request, named if array is None else array)
    if labels is None:
        return Data(stored.records, stored.labels)
    return Data(stored.records, _named_labels(file, labels, request, stored.total))


def summary_line(name: str, array: Array) -> str:
    """Write an array's dtype, shape, minimum, maximum and mean, or the lengths of texts."""
    is_text = array.dtype == OBJECTS
    line = f"{name}: {'texts' if is_text else array.dtype} {shape_text(array.shape)}"
    if array.size == 0:
        return f"{line}, no elements"
    if is_text:
        lengths = [len(text) for text in array.flat]
        return f"{line}, of {min(lengths)} to {max(lengths)} bytes"
    least, most, mean = _figures(array.view(np.uint8) if array.dtype == np.bool_ else array)
    return f"{line}, min {least:.6g}, max {most:.6g}, mean {mean:.6g}"


def _figures(numbers: Array) -> tuple[Any, Any, Any]:
    """Compute the least and the largest number and the mean, some records at a time."""
    wide = np.complex128 if numbers.dtype.kind == "c" else np.float64
    step = max(1, PIECE * len(numbers) // numbers.nbytes)
    least, most, total = numbers[:1].min(), numbers[:1].max(), wide(0)
    for begin in range(0, len(numbers), step):
        some = numbers[begin : begin + step]
        least, most = min(least, some.min()), max(most, some.max())
        total += some.sum(dtype=wide)
        release(some)
    return least, most, total / numbers.size


def _read(path: str, request: Wanted, array: str | None) -> Stored:
    kind = _kind(path)
    if kind == "npz":
        return npz.read_npz(path, request, array)
    if array is not None:
        raise DataError(f"array {array!r} is asked for, but only .npz files have named arrays")
    if kind == "folder":
        return raw_files.read_folder(path, request)
    if kind == "npy":
        return npz.read_npy(path, request)
    if kind == "hdf5":
        return hdf5.read_hdf5(path, request)
    if kind == "raw":
        return raw_files.read_raw(path, request)
    if kind == "random":
        return read_random(path, request)
    if kind == "each":
        return raw_files.read_each(path, request)
    return raw_files.read_list(path, request)


def _kind(path: str) -> str:
    """Find the kind of file at a path, by its first bytes: folder, hdf5, npz, npy or list; raw by
    its name, as its bytes may be any, and each and random, which are no file.
    """
    if random_count(path) is not None:
        return "random"
    if path.startswith(EACH):
        return "each"
    if os.path.isdir(path):
        return "folder"
    with open_file(path) as file:
        head = file.read(4096)
    if not head:
        raise DataError("the file is empty")
    if any(head.startswith(_HDF5_MAGIC, offset) for offset in _HDF5_OFFSETS):
        return "hdf5"
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    extension = os.path.splitext(path)[1].lower()
    if extension in RAW:
        return "raw"
    if extension in _EXTENSIONS:
        raise DataError(f"is damaged or no {_EXTENSIONS[extension]} file, whatever its name")
    if b"\0" in head:
        raise DataError("is neither HDF5, .npz, .npy nor a list of files")
    return "list"


def _split_name(path: str) -> tuple[str, str | None]:
    """Split ``file.npz:x_test`` into file and array; a path that exists is never split."""
    file, colon, name = path.rpartition(":")
    if os.path.exists(path) or not colon or not os.path.isfile(file):
        return path, None
    return file, name


def _named_labels(path: str, labels: str, request: Wanted, total: int) -> Array:
    """Read the labels a caller names: in the data file itself, or else in a file of their own."""
    with about(path), _own_labels(path, labels) as rows:
        if rows is not None:
            return read_labels(request, rows, total)
    file, name = _split_name(labels)
    if not os.path.exists(file):
        raise DataError(f"{path}: labels {labels!r} are neither an array in it nor a file")
    with about(file), _label_rows(file, name) as rows:
        return read_labels(request, rows, total)


@contextmanager
def _own_labels(path: str, labels: str) -> Iterator[Rows | None]:
    kind = _kind(path)
    if kind == "npz":
        with npz.opened_npz(path) as archive:
            yield archive.rows(labels) if labels in archive.names() else None
    elif kind == "hdf5":
        with open_hdf5(path) as file:
            yield hdf5.rows_of(file, labels) if file.has(labels) else None
    else:
        yield None


@contextmanager
def _label_rows(path: str, name: str | None) -> Iterator[Rows]:
    kind = _kind(path)
    if kind == "hdf5":
        with open_hdf5(path) as file:
            yield hdf5.rows_of(file, "labels" if name is None else name)
    elif kind == "npy" and name is None:
        with npz.opened_npy(path) as rows:
            yield rows
    elif kind == "npz":
        with npz.opened_npz(path) as archive:
            yield archive.rows(_label_name(archive.names()) if name is None else name)
    else:
        raise DataError("labels are read from FILE.npy, FILE.npz:ARRAY or FILE.h5:/DATASET")


def _label_name(names: Sequence[str]) -> str:
    only = names[0] if len(names) == 1 else npz.label_array(names)
    if only is None:
        raise DataError(f"several arrays could be the labels, say which: {all_quoted(names)}")
    return only
