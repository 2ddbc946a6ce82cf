"""Read calibration or evaluation data: find out what a path holds, its inputs and its labels."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.value import shape_text
from luciole.tools.data import hdf5, npz, raw_files
from luciole.tools.data.errors import AskedError, DataError, about
from luciole.tools.data.fitting import InputSpec, Stored, check_labels, input_specs
from luciole.tools.data.preprocess import parse_preprocess

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HDF5_OFFSETS = (0, 512, 1024, 2048)
_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", raw_files.NPY_MAGIC: "npy"}
_EXTENSIONS = {".h5": "HDF5", ".hdf5": "HDF5", ".npz": ".npz", ".npy": ".npy"}


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

    def summary(self) -> list[str]:
        """One line per input: dtype, shape, minimum, maximum and mean of what will be fed."""
        return [_summary_line(name, array) for name, array in self.records.items()]


def load_data(
    path: str,
    graph: Graph,
    *,
    limit: int | None = None,
    preprocess: str | None = None,
    array: str | None = None,
    labels: str | None = None,
) -> Data:
    """Read the first ``limit`` records of a file or folder as a graph's inputs take them.

    ``path``: HDF5 in ONE's layout, .npz, .npy, a folder or a list of record files, told by content.
    ``array``: which array of an .npz is the input; ``FILE:ARRAY`` as path says the same.
    ``preprocess``: arithmetic in ``x`` for real numbers, e.g. ``x/255``; ``none`` for nothing.
    ``labels``: an array of the same file, or ``FILE.npy``, ``FILE.npz:ARRAY`` or
    ``FILE.h5:/DATASET``; without it, what the file itself has beside the records.

    uint8 and float64 become float32 for a float32 input, and they and float32 are quantized for a
    quantized one, whose own type is taken as what it stores (uint8 unless it is preprocessed);
    nothing else is converted. Raises DataError, which begins with the file's name, for all that
    cannot be read or does not fit.
    """
    if limit is not None and limit < 1:
        raise AskedError(f"limit is {limit}, at least 1 record is needed")
    specs = input_specs(graph, None if preprocess is None else parse_preprocess(preprocess))
    file, named = _split_name(path)
    if named is not None and array not in (None, named):
        raise DataError(f"{path}: names array {named!r}, but array {array!r} is asked for")
    with about(file):
        stored = _read(file, specs, limit, named if array is None else array)
    found = stored.labels if labels is None else _find_labels(file, labels)
    if found is None:
        return Data(stored.records)
    with about(file if labels is None else labels):
        return Data(stored.records, check_labels(found, stored.total)[:limit])


def _summary_line(name: str, array: Array) -> str:
    line = f"{name}: {array.dtype} {shape_text(array.shape)}"
    if array.size == 0:
        return f"{line}, no elements"
    numbers = array.view(np.uint8) if array.dtype == np.bool_ else array
    mean = numbers.mean(dtype=np.complex128 if array.dtype.kind == "c" else np.float64)
    return f"{line}, min {numbers.min():.6g}, max {numbers.max():.6g}, mean {mean:.6g}"


def _read(path: str, specs: list[InputSpec], limit: int | None, array: str | None) -> Stored:
    kind = _kind(path)
    if kind == "npz":
        return npz.read_npz(path, specs, limit, array)
    if array is not None:
        raise DataError(f"array {array!r} is asked for, but only .npz files have named arrays")
    if kind == "folder":
        return raw_files.read_folder(path, specs, limit)
    if kind == "npy":
        return npz.read_npy(path, specs, limit)
    if kind == "hdf5":
        return hdf5.read_hdf5(path, specs, limit)
    return raw_files.read_list(path, specs, limit)


def _kind(path: str) -> str:
    """What a path holds, by its first bytes: folder, hdf5, npz, npy or list."""
    if os.path.isdir(path):
        return "folder"
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head:
        raise DataError("the file is empty")
    if any(head.startswith(_HDF5_MAGIC, offset) for offset in _HDF5_OFFSETS):
        return "hdf5"
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    extension = os.path.splitext(path)[1].lower()
    if extension in _EXTENSIONS:
        raise DataError(f"is damaged or no {_EXTENSIONS[extension]} file, whatever its name")
    if b"\0" in head:
        raise DataError("is neither HDF5, .npz, .npy nor a list of files")
    return "list"


def _split_name(path: str) -> tuple[str, str | None]:
    """``file.npz:x_test`` as file and array; a path that exists is never split."""
    file, colon, name = path.rpartition(":")
    if os.path.exists(path) or not colon or not os.path.isfile(file):
        return path, None
    return file, name


def _find_labels(path: str, labels: str) -> Array:
    """The labels a caller names: in the data file itself, or else in a file of their own."""
    with about(path):
        own = _own_labels(path, labels)
    if own is not None:
        return own
    file, name = _split_name(labels)
    if not os.path.isfile(file):
        raise DataError(f"{path}: labels {labels!r} are neither an array in it nor a file")
    with about(file):
        return _read_labels(file, name)


def _own_labels(path: str, labels: str) -> Array | None:
    kind = _kind(path)
    if kind == "npz" and labels in npz.array_names(path):
        return npz.load_member(path, labels)
    if kind == "hdf5" and hdf5.has_dataset(path, labels):
        return hdf5.read_dataset(path, labels)
    return None


def _read_labels(path: str, name: str | None) -> Array:
    kind = _kind(path)
    if kind == "hdf5":
        return hdf5.read_dataset(path, "labels" if name is None else name)
    if kind == "npy" and name is None:
        return npz.load_npy(path)
    if kind != "npz":
        raise DataError("labels are read from FILE.npy, FILE.npz:ARRAY or FILE.h5:/DATASET")
    names = npz.array_names(path)
    only = names[0] if len(names) == 1 else npz.label_array(names)
    if name is None and only is None:
        raise DataError(f"several arrays could be the labels, say which: {', '.join(names)}")
    return npz.load_member(path, name if name is not None else str(only))
