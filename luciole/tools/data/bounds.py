"""Bound the memory that data may take, and the files it may be in."""

from __future__ import annotations

import argparse
import errno
import io
import os
import stat
from dataclasses import dataclass

from luciole.tools.data.errors import AskedError, DataError

DATA_LIMIT = 4 << 30
"""Bytes."""

_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class Bounds:
    """Limits that a user sets: bytes that records and labels take in memory, and whether lists and
    links may lead out of their folder.
    """

    data_limit: int = DATA_LIMIT
    allow_outside: bool = False

    @staticmethod
    def of(arguments: argparse.Namespace) -> Bounds:
        """Read a program's ``add_data_bounds`` arguments."""
        limit = arguments.data_limit
        if limit is not None and limit < 1:
            raise AskedError(f"data_limit is {limit}, at least 1 byte is needed")
        return Bounds(DATA_LIMIT if limit is None else limit, arguments.allow_outside)


class Room:
    """The bytes that are left of a limit; what is read is counted before it is read."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def take(self, size: int, what: str) -> None:
        """Count bytes. Raises DataError where they are more than what is left."""
        if size > self.left:
            raise DataError(
                f"{what} take {size:,} bytes, {self.left:,} of {self.limit:,} are left for data: "
                f"read fewer records, or allow more (--data-limit BYTES)"
            )
        self.left -= size


def open_file(
    path: str | os.PathLike[str], kind: type[io.BufferedReader] = io.BufferedReader
) -> io.BufferedReader:
    """Open a file for reading. Raises DataError for what may never end, as pipes and devices."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise DataError(f"is {_SPECIAL.get(stat.S_IFMT(mode), 'special')}, a file is needed")
    return kind(io.FileIO(path))
