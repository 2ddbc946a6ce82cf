"""Folders and list files: each record a file, .npy or the bytes of all inputs in a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from luciole.ir.dtypes import Array
from luciole.tools.data.errors import DataError, about
from luciole.tools.data.fitting import InputSpec, Stored, check_count, collect
from luciole.tools.data.npz import load_npy

NPY_MAGIC = b"\x93NUMPY"


def read_folder(path: str, specs: Sequence[InputSpec], limit: int | None) -> Stored:
    """The first ``limit`` files of a folder in natural order: 2.raw before 10.raw.

    Sub-folders and files whose names begin with a dot are passed over.
    """
    files = [f for f in Path(path).iterdir() if f.is_file() and not f.name.startswith(".")]
    if not files:
        raise DataError("the folder has no files")
    return _read_files(sorted(files, key=_natural), specs, limit)


def read_list(path: str, specs: Sequence[InputSpec], limit: int | None) -> Stored:
    """The first ``limit`` files named in a list, one per line, relative to the list's folder."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("is neither HDF5, .npz, .npy nor a list of files") from error
    lines = [line.strip() for line in text.split("\n")]
    files = [Path(path).parent / line for line in lines if line]
    return _read_files(files, specs, limit)


def _natural(file: Path) -> list[str | int]:
    """Text and numbers in turn, so that numbers compare as numbers."""
    parts = re.split(r"([0-9]+)", file.name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _read_files(files: Sequence[Path], specs: Sequence[InputSpec], limit: int | None) -> Stored:
    total = check_count(len(files))
    first = files[:limit]
    records = ((f"record {i} ({f.name})", _read_record(f, specs)) for i, f in enumerate(first))
    return Stored(collect(specs, records, len(first)), total)


def _read_record(file: Path, specs: Sequence[InputSpec]) -> Sequence[Array]:
    with about(str(file)):
        raw = file.read_bytes()
        if not raw.startswith(NPY_MAGIC):
            return _split(raw, specs)
        if len(specs) != 1:
            raise DataError(f"a .npy file holds one input, the model has {len(specs)}")
        return [load_npy(str(file))]


def _split(raw: bytes, specs: Sequence[InputSpec]) -> Sequence[Array]:
    sizes = [spec.byte_count() for spec in specs]
    if len(raw) != sum(sizes):
        wanted = " + ".join(f"{n} for {s.name!r}" for s, n in zip(specs, sizes, strict=True))
        raise DataError(f"a raw record has {wanted} bytes, found {len(raw)}")
    arrays = []
    for spec, size in zip(specs, sizes, strict=True):
        arrays.append(spec.from_bytes(raw[:size]))
        raw = raw[size:]
    return arrays
