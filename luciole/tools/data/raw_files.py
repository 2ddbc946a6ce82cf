"""Folders and list files: each record a file, .npy or the bytes of all inputs in a row; and files
with the bytes of one record after the other.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

from luciole.ir.dtypes import Array
from luciole.schema.printable import printable
from luciole.tools.common.apart import EACH
from luciole.tools.data.bounds import open_file
from luciole.tools.data.collecting import Rows, Stored, Wanted, collect
from luciole.tools.data.errors import DataError, about
from luciole.tools.data.fitting import InputSpec
from luciole.tools.data.npy import MAGIC, read_header

_LONGEST_LINE = 4096
"""Characters; no path is longer."""
_OUTSIDE = "is not below the folder that names it, and is read with --allow-outside"


def read_folder(path: str, request: Wanted) -> Stored:
    """Read the files of a folder in natural order: 2.raw before 10.raw.

    Sub-folders, entries that are no files and files whose names begin with a dot are passed over.
    """
    files = [f for f in Path(path).iterdir() if f.is_file() and not f.name.startswith(".")]
    if not files:
        raise DataError("the folder has no files")
    first = sorted(files, key=_natural)[: request.limit]
    records = _records(first, request.specs, None if request.allow_outside else path)
    return Stored(collect(request, records, len(files)), len(files))


def read_list(path: str, request: Wanted) -> Stored:
    """Read the files named in a list, one per line, relative to the list's folder."""
    total = sum(1 for _ in _lines(path))
    folder = Path(path).parent
    files = (folder / line for line in islice(_lines(path), request.count(total)))
    records = _records(files, request.specs, None if request.allow_outside else str(folder))
    return Stored(collect(request, records, total), total)


def read_raw(path: str, request: Wanted) -> Stored:
    """Read a file of bytes: record after record, the inputs of each in a row."""
    each = sum(spec.byte_count() for spec in request.specs)
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not each or size % each:
            raise DataError(f"holds {size} bytes, no whole number of records of {each} bytes")
        total = size // each
        numbers = range(request.count(total))
        records = (_raw(file, each, request.specs, f"record {number}") for number in numbers)
        return Stored(collect(request, records, total), total)


def read_each(path: str, request: Wanted) -> Stored:
    """Read one record from files of bytes, one for each input in their order: ``each:PREFIX`` names
    PREFIX0, PREFIX1, ...
    """
    rows: list[Rows] = []
    with ExitStack() as files:
        for number, spec in enumerate(request.specs):
            name = f"{path.removeprefix(EACH)}{number}"
            with about(name):
                file = files.enter_context(open_file(name))
                rows += _raw(file, os.fstat(file.fileno()).st_size, [spec], Path(name).name)
        return Stored(collect(request, [rows], 1), 1)


def _lines(path: str) -> Iterator[str]:
    """List the lines that are not blank, without the blanks around them."""
    with io.TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="\n") as file:
        number = 0
        while line := _line(file):
            number += 1
            if len(line) > _LONGEST_LINE or "\0" in line:
                raise DataError(f"line {number} is no path")
            if line := line.strip():
                yield line


def _line(file: io.TextIOWrapper) -> str:
    try:
        return file.readline(_LONGEST_LINE + 1)
    except UnicodeDecodeError as error:
        raise DataError("is neither HDF5, .npz, .npy nor a list of files") from error


def _natural(file: Path) -> list[str | int]:
    """Split into text and numbers in turn, so that numbers compare as numbers."""
    parts = re.split(r"([0-9]+)", file.name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _records(
    files: Iterable[Path], specs: Sequence[InputSpec], folder: str | None
) -> Iterator[Sequence[Rows]]:
    """Read records from files, which must be below the folder unless that is None."""
    top = None if folder is None else os.path.realpath(folder)
    for number, path in enumerate(files):
        with about(str(path)):
            if top is not None and not Path(os.path.realpath(path)).is_relative_to(top):
                raise DataError(_OUTSIDE)
            with open_file(path) as file:
                yield _record(file, specs, f"record {number} ({printable(path.name)})")


def _record(file: io.BufferedReader, specs: Sequence[InputSpec], source: str) -> list[Rows]:
    size = os.fstat(file.fileno()).st_size
    start = file.read(len(MAGIC))
    file.seek(0)
    if not start.startswith(MAGIC):
        return _raw(file, size, specs, source)
    if len(specs) != 1:
        raise DataError(f"a .npy file holds one input, the model has {len(specs)}")
    array = read_header(file, size, source)
    return [Rows(source, (1, *array.shape), array.dtype, lambda _: iter([array.whole()[None]]))]


def _raw(file: io.BufferedReader, size: int, specs: Sequence[InputSpec], source: str) -> list[Rows]:
    sizes = [spec.byte_count() for spec in specs]
    if size != sum(sizes):
        sizes_text = " + ".join(f"{n} for {s.name!r}" for s, n in zip(specs, sizes, strict=True))
        raise DataError(f"a raw record has {sizes_text} bytes, found {size}")
    return [_part(file, spec, source) for spec in specs]


def _part(file: io.BufferedReader, spec: InputSpec, source: str) -> Rows:
    """Take the part of a raw record that is one input's; parts are read in their order."""

    def blocks(_: int) -> Iterator[Array]:
        raw = np.frombuffer(file.read(spec.byte_count()), np.uint8)
        yield spec.from_bytes(raw)[np.newaxis]

    return Rows(source, (1, *spec.extents()), spec.dtype, blocks)
