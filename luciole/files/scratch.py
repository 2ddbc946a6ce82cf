"""Files without a name, for what is larger than memory should hold."""

from __future__ import annotations

import os
import tempfile
from typing import IO


def scratch(size: int) -> IO[bytes] | None:
    """Make a file of so many bytes that goes when it is closed, in the folder for temporary files;
    None where that has no room, or nothing tells.
    """
    if not hasattr(os, "posix_fallocate"):
        return None
    file = tempfile.TemporaryFile()  # noqa: SIM115  # who asks for it closes it
    try:  # to have room: else writing to a map of it may end the process
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        file.close()
        return None
    return file
