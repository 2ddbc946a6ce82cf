"""Drafts: where contents are gathered until they are whole.

A draft lies beside the file that it will be, under a name of its own, and is locked. One that
nobody locks is what a killed writer has left: the next one who writes the file removes it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from luciole.files.places import Place

ENDING = ".luciole-draft"
"""Ending of the names of drafts."""

_LONGEST = 40
"""Characters of a file's name in that of its draft: a name has room for 255 bytes."""


@dataclass(frozen=True)
class Draft:
    """An open file; ``path`` is where it lies to be renamed, None where it lies elsewhere."""

    file: BinaryIO
    path: str | None = None


@contextmanager
def draft_for(place: Place) -> Iterator[Draft]:
    """Make an empty draft that is gone in the end, unless it was renamed."""
    made = _beside(place)
    if made is None:
        with tempfile.TemporaryFile() as file:
            yield Draft(file)
        return
    handle, path = made
    try:
        with os.fdopen(handle, "w+b") as file:
            yield Draft(file, path)
    finally:
        with suppress(FileNotFoundError):  # it was renamed
            os.unlink(path)


def _beside(place: Place) -> tuple[int, str] | None:
    """Make a draft beside a file, with its owner and permissions. None where something is written
    to, because it is no file or its folder takes no new one.
    """
    if place.stream:
        return None
    _remove_left_behind(place.path)
    mode = 0o666 if place.before is None else stat.S_IMODE(place.before.st_mode) & 0o777
    try:
        made = _new_draft(place.path, mode)
    except OSError:
        if not place.is_writable:
            raise
        return None
    if place.before is not None:
        with suppress(OSError):  # only root gives files away
            os.fchown(made[0], place.before.st_uid, place.before.st_gid)
        with suppress(OSError):  # there are disks without permissions
            os.fchmod(made[0], mode)
    return made


def _new_draft(place: Path, mode: int) -> tuple[int, str]:
    """Make and lock a draft. One that another process locks first is taken for left behind."""
    while True:
        path = f"{_names_begin(place)}{secrets.token_hex(4)}{ENDING}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        try:
            _lock(handle)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:  # there are no locks here: nothing is taken for left behind
            return handle, path
        if os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)


def _names_begin(place: Path) -> str:
    return str(place.with_name(f".{place.name[:_LONGEST]}."))


def _lock(handle: int) -> None:
    """Lock a file, or raise OSError: BlockingIOError where somebody has."""
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_left_behind(place: Path) -> None:
    """Remove drafts of a file whose writers were killed."""
    begin = os.path.basename(_names_begin(place))
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if entry.name.startswith(begin) and entry.name.endswith(ENDING):
                _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            _lock(handle)
            os.unlink(path)
        finally:
            os.close(handle)
