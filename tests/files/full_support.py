"""Disks that are full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest


def full_from(monkeypatch: pytest.MonkeyPatch, begin: str) -> None:
    """Let the disk be full when a file whose name begins so has been written by half."""
    write = Path.write_bytes

    def written(path: Path, content: bytes) -> int:
        if not path.name.startswith(begin):
            return write(path, content)
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", written)
