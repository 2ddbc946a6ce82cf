"""Arrays in .npy and .npz files, and which of several arrays are the inputs and the labels."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from luciole.schema.printable import all_quoted, printable, quoted, shorten
from luciole.tools.data.bounds import open_file
from luciole.tools.data.collecting import Rows, Stored, Wanted, collect, read_labels
from luciole.tools.data.errors import DataError, damage_refused
from luciole.tools.data.fitting import InputSpec
from luciole.tools.data.npy import PIECE, NpyArray, read_header

_LABEL = re.compile(r"(y|labels?|targets?)(_.*)?|.*_(labels?|targets?)|(train|test|val|valid)_y")
_DATA = re.compile(r"(x|images?|data|inputs?)(_.*)?|input.*|.*_(x|images?|data|inputs?)")
_SPLIT = re.compile(r"(?:^|_)(train|test|val|valid|validation)(?=_|$)")


def read_npy(path: str, request: Wanted) -> Stored:
    """Read the records of the one array in a .npy file, for a model with one input."""
    if len(request.specs) != 1:
        raise DataError(f"a .npy file holds one input, the model has {_listed(request.specs)}")
    with opened_npy(path) as rows:
        total = _record_count(rows)
        return Stored(collect(request, [[rows]], total), total)


@contextmanager
def opened_npy(path: str) -> Iterator[Rows]:
    """Open the array of a .npy file, of which nothing has been read but its header."""
    with open_file(path) as file:
        yield _rows(read_header(file, os.path.getsize(path), "the array"))


def read_npz(path: str, request: Wanted, array: str | None = None) -> Stored:
    """Read the records of the arrays that are the inputs, and their labels.

    ``array`` says which array is the input of a model with one input. Raises DataError when the
    arrays cannot be told apart.
    """
    with opened_npz(path) as archive:
        names = archive.names()
        chosen = _choose(names, request.specs, array)
        rows = [archive.rows(name) for name in chosen]
        totals = {s.name: _record_count(r) for s, r in zip(request.specs, rows, strict=True)}
        if len(set(totals.values())) != 1:
            raise DataError(f"every input needs the same number of records, found {totals}")
        total = next(iter(totals.values()))
        records = collect(request, [rows], total)
        label = label_array(names, chosen) if request.labels else None
        if label is None:
            return Stored(records, total)
        return Stored(records, total, read_labels(request, archive.rows(label), total))


class Npz:
    """The arrays in a .npz file: a zip archive, each member a .npy file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}

    def names(self) -> list[str]:
        """List the arrays' names, in the order of the file."""
        return list(self._members)

    def rows(self, name: str) -> Rows:
        """Open an array, of which nothing has been read but its header."""
        if name not in self._members:
            raise DataError(f"no array {quoted(name)}, found {all_quoted(self.names())}")
        member, source = self._members[name], f"array {quoted(name)}"
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(
                f"{source} is packed with method {member.compress_type}, 0 and 8 (deflate) are read"
            )
        with damage_refused(source):
            file = self._archive.open(member)
        return _rows(read_header(file, member.file_size, source))


@contextmanager
def opened_npz(path: str) -> Iterator[Npz]:
    """Open a .npz file."""
    with open_file(path, _Sparing) as file:
        with damage_refused("the file"):
            archive = zipfile.ZipFile(file)
        with archive:
            yield Npz(archive)


class _Sparing(io.BufferedReader):
    """A file of which nobody reads much at once: a zip archive's table of contents is read whole,
    and takes many times its size.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes. Raises DataError where there are more than a piece of them."""
        asked = PIECE + 1 if size is None or size < 0 else size
        piece = super().read(min(asked, PIECE + 1))
        if len(piece) > PIECE:
            raise DataError(f"the archive's table of contents is longer than {PIECE} bytes")
        return piece


def _rows(array: NpyArray) -> Rows:
    return Rows(array.name, array.shape, array.dtype, array.blocks, numbered=True)


def _record_count(rows: Rows) -> int:
    """Count the records. Raises DataError where nothing counts them."""
    if not rows.shape:
        raise DataError(f"{rows.source} is a single number; its first axis has to count records")
    return rows.shape[0]


def _choose(names: Sequence[str], specs: Sequence[InputSpec], array: str | None) -> list[str]:
    """Choose the array of each input."""
    if array is not None:
        if len(specs) != 1:
            raise DataError(f"{array!r} names one array, the model has {_listed(specs)}")
        return [array]
    for called in zip(*(spec.names for spec in specs), strict=True):
        if set(called) <= set(names):
            return list(called)
    missing = [spec for spec in specs if not set(spec.names) & set(names)] or list(specs)
    if len(specs) > 1:
        input_names = " or ".join(map(repr, dict.fromkeys(missing[0].names)))
        raise DataError(f"no array for input {input_names}, found {all_quoted(names)}")
    return [_only_data_array(names, specs[0].name)]


def _only_data_array(names: Sequence[str], input_name: str) -> str:
    data = [name for name in names if not _LABEL.fullmatch(name)]
    usual = [name for name in data if _DATA.fullmatch(name)]
    for candidates in (data, usual):
        if len(candidates) == 1:
            return candidates[0]
    if not data:
        raise DataError(f"no array for input {input_name!r}, found {all_quoted(names)}")
    shown = shorten(printable((usual or data)[-1]))
    raise DataError(
        f"input {input_name!r} could be any of {all_quoted(usual or data)}: "
        f"say which, e.g. FILE:{shown}"
    )


def label_array(names: Sequence[str], chosen: Sequence[str] = ()) -> str | None:
    """Find the array that labels the chosen ones, None if there is none or several could be it.

    It is of the same split: ``x_test`` goes with ``y_test``, ``train_images`` with
    ``train_labels``, ``x`` with ``y`` or ``labels``.
    """
    labels = [name for name in names if _LABEL.fullmatch(name) and name not in chosen]
    others = [name for name in names if name not in labels]
    if len(labels) == 1 and len(others) <= 1:
        return labels[0]
    split = _SPLIT.findall(chosen[0]) if chosen else []
    same = [name for name in labels if _SPLIT.findall(name) == split]
    twins = [name for name in same if chosen and name == re.sub(r"^x", "y", chosen[0])]
    candidates = twins or same
    return candidates[0] if len(candidates) == 1 else None


def _listed(specs: Sequence[InputSpec]) -> str:
    return f"{len(specs)} inputs: {all_quoted([spec.name for spec in specs])}"
