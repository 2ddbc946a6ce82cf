"""Write what a model computed: to .npz, .npy, HDF5 in ONE's layout, or as bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from luciole.files import check_writable, replacing, write_file, write_files
from luciole.ir.dtypes import Array
from luciole.ir.strings import OBJECTS
from luciole.schema.errors import LucioleError
from luciole.schema.printable import listed
from luciole.tools.common.apart import EACH
from luciole.tools.common.command import UsageError
from luciole.tools.data.hdf5 import write_hdf5

Arrays = Mapping[str, Array]
"""Results by name, whose first axis counts records."""


def write_results(path: str, arrays: Arrays) -> None:
    """Write results to a file of the kind that its extension asks for, whole or not at all.

    Raises LucioleError for what such a file does not hold.
    """
    if path.startswith(EACH):
        _write_each(path, arrays)
    else:
        _WRITERS[_extension(path)](path, arrays)


def check_results(path: str) -> None:
    """Refuse early a file that ``write_results`` would refuse after long work. Raises UsageError
    for an extension of none.
    """
    if path == EACH:
        raise UsageError("each: needs a prefix of names: each:PREFIX")
    if path.startswith(EACH):
        check_writable(f"{path.removeprefix(EACH)}0")
        return
    if _extension(path) not in _WRITERS:
        raise UsageError(f"{path}: results are written as {listed(_WRITERS, 'or')}")
    check_writable(path)


def _extension(path: str) -> str:
    return Path(path).suffix.lower()


def _write_npz(path: str, arrays: Arrays) -> None:
    with replacing(path) as draft, zipfile.ZipFile(draft, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            _write_array(member, name, array)
            archive.writestr(f"{name}.npy", member.getbuffer())


def _write_npy(path: str, arrays: Arrays) -> None:
    if len(arrays) != 1:
        raise UsageError(
            f"{path}: a .npy file holds one array, there are {len(arrays)}: "
            f"{', '.join(map(repr, arrays))}; --output NAME chooses one, .npz holds all"
        )
    ((name, array),) = arrays.items()
    with replacing(path) as file:
        _write_array(file, name, array)


def _write_array(file: IO[bytes], name: str, array: Array) -> None:
    np.lib.format.write_array(file, _storable(name, array), allow_pickle=False)


def _storable(name: str, array: Array) -> Array:
    """Give texts the type that files have for them. Raises LucioleError for texts that it cuts
    off.
    """
    if array.dtype != OBJECTS:
        return array
    if any(text.endswith(b"\0") for text in array.flat):
        raise LucioleError(f"{name!r} holds texts that end in a 0 byte: no file keeps them")
    return array.astype(np.bytes_)


def _write_hdf5(path: str, arrays: Arrays) -> None:
    write_hdf5(path, arrays)


def _write_raw(path: str, arrays: Arrays) -> None:
    """Write record after record, all results of each in a row, as raw records are read."""
    write_file(path, np.concatenate(_bytes_of(arrays), axis=1).tobytes())


def _write_each(path: str, arrays: Arrays) -> None:
    """Write a file of bytes for each result, as ``each:PREFIX`` is read."""
    prefix = path.removeprefix(EACH)
    rows = enumerate(_bytes_of(arrays))
    write_files({Path(f"{prefix}{number}"): part.tobytes() for number, part in rows})


def _bytes_of(arrays: Arrays) -> list[Array]:
    """Turn every array into the bytes of each record."""
    texts = [name for name, array in arrays.items() if array.dtype == OBJECTS]
    if texts:
        raise LucioleError(f"{texts[0]!r} holds texts: raw bytes are none, use .npz or .npy")
    return [np.ascontiguousarray(a).reshape(len(a), -1).view(np.uint8) for a in arrays.values()]


_WRITERS: dict[str, Callable[[str, Arrays], None]] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    ".h5": _write_hdf5,
    ".hdf5": _write_hdf5,
    ".raw": _write_raw,
    ".bin": _write_raw,
}
