"""Bytes of files: copies of small ones, and large ones mapped, which must stay as they are until
nobody uses them.
"""

from __future__ import annotations

import gc
import mmap
import os
from pathlib import Path
from weakref import WeakKeyDictionary

_mapped: WeakKeyDictionary[mmap.mmap, tuple[int, int]] = WeakKeyDictionary()
"""Mapped files: device and number of each."""


MOST_COPIED = 64 << 20
"""Bytes of a file that is copied. Who reads what is mapped gets a bus error once somebody else has
cut the file.
"""


def contents_of(path: Path) -> bytes | mmap.mmap:
    """Read a file's bytes, or map a large one's, read-only."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= MOST_COPIED:
            return file.read(size)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _mapped[mapped] = _identity(os.fstat(file.fileno()))
        return mapped


def is_mapped(handle: int) -> bool:
    """Return whether somebody in this process uses the bytes of an open file."""
    identity = _identity(os.fstat(handle))
    if identity in _mapped.values():
        gc.collect()  # operators and tensors know each other: models wait for it to go
    return identity in _mapped.values()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
