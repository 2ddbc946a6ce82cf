"""Write whole files or nothing, and write to pipes and devices."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from luciole.files.drafts import Draft, draft_for
from luciole.files.mapping import is_mapped
from luciole.files.places import Path_, Place, place_of, refusal
from luciole.schema.errors import LucioleError

_AT_ONCE = 1 << 20
"""Bytes or characters that are written at a time."""


def write_file(path: Path_, content: bytes | str | Iterable[memoryview]) -> int:
    """Write a whole file or nothing, see ``replacing``. The content may come in parts.

    Returns its size in bytes.
    """
    data = content.encode() if isinstance(content, str) else content
    parts = [memoryview(data)] if isinstance(data, bytes) else data
    with replacing(path) as file:
        return sum(file.write(part) for part in parts)


def write_files(contents: Mapping[Path, bytes | str]) -> None:
    """Write whole files, all of them or none: drafts of all are written before the first is
    renamed, each as ``replacing`` has it. Raises LucioleError for the one that cannot be written.
    """
    with ExitStack() as drafts:
        written = []
        for path, content in contents.items():
            drafts.enter_context(refused(path))
            place = place_of(path)
            draft = drafts.enter_context(draft_for(place))
            for begin in range(0, len(content), _AT_ONCE):
                part = content[begin : begin + _AT_ONCE]
                draft.file.write(part.encode() if isinstance(part, str) else part)
            draft.file.flush()
            written.append((path, draft, place))
        for path, draft, place in written:
            with refused(path):
                _publish(draft, place)


def write_folder(
    folder: Path, contents: Mapping[str, bytes | str], kind: type[LucioleError]
) -> None:
    """Write whole files by their paths in a folder, all of them or none. Raises the ``kind`` where
    the folder cannot be made, and as ``write_files`` does.
    """
    places = {folder / name: content for name, content in contents.items()}
    try:
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        why = getattr(error, "strerror", None) or error
        raise kind(f"{folder} cannot be made a folder: {why}") from None
    write_files(places)


@contextmanager
def replacing(path: Path_) -> Iterator[BinaryIO]:
    """Give a file to write and read in, whose contents become those of ``path`` at the end, unless
    something was raised.

    Links are followed. A file is replaced and keeps its permissions; it is written over where its
    folder takes no new one. What is no file (a device, a pipe, ``/dev/stdout``) is written to.
    Raises LucioleError where that is not possible.
    """
    with refused(path):
        place = place_of(path)
        with draft_for(place) as draft:
            yield draft.file
            draft.file.flush()
            _publish(draft, place)


def check_writable(path: Path_) -> None:
    """Refuse early the files that ``replacing`` would refuse after long work."""
    with refused(path):
        place_of(path)


@contextmanager
def refused(path: Path_) -> Iterator[None]:
    """Name the file that cannot be written where the system refuses an operation."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from None


def _publish(draft: Draft, place: Place) -> None:
    """Set the contents of a place to those of a draft."""
    if place.stream:
        _pour(draft.file, place)
    elif draft.path is None or not _renamed(draft.path, place):
        _write_over(draft.file, place)


def _renamed(draft: str, place: Place) -> bool:
    """Move a draft to the place of a file, and return whether it was moved. Raises OSError where it
    could not, and there is no file that may be written to.
    """
    try:
        os.replace(draft, place.path)
    except OSError:  # something is mounted there, or the folder keeps everybody's files
        if not place.is_writable:
            raise
        return False
    return True


def _pour(draft: BinaryIO, place: Place) -> None:
    """Write a draft to a pipe or device."""
    own = place.descriptor
    if own is not None:
        sys.stdout.flush()  # what was printed before comes before
    handle = os.open(place.path, os.O_WRONLY) if own is None else own
    draft.seek(0)
    with os.fdopen(handle, "wb", closefd=own is None) as stream:
        shutil.copyfileobj(draft, stream, _AT_ONCE)


def _write_over(draft: BinaryIO, place: Place) -> None:
    """Write a draft over a file that cannot be replaced.

    Raises LucioleError for one in use, and OSError before anything is lost where the disk is full.
    """
    size = draft.seek(0, os.SEEK_END)
    draft.seek(0)
    with os.fdopen(os.open(place.path, os.O_WRONLY), "wb") as file:
        if is_mapped(file.fileno()):
            raise refusal(place.path, "it cannot be replaced, and a model loaded from it is in use")
        _take_room(file.fileno(), size)
        shutil.copyfileobj(draft, file, _AT_ONCE)
        file.truncate()


def _take_room(handle: int, size: int) -> None:
    """Give a file room for ``size`` bytes, or leave it as long as it was."""
    before = os.fstat(handle).st_size
    if size <= before or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, before, size - before)
    except OSError:
        os.ftruncate(handle, before)
        raise
