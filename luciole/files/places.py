"""Find the file that is written to by a path: behind links, to a file, or to what is no file."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from luciole.schema.errors import LucioleError

Path_ = str | os.PathLike[str]

_MOST_LINKS = 40
"""Links in a row that Linux follows."""


@dataclass(frozen=True)
class Place:
    """The path of a file, ``before`` what there is now; or of a ``stream``, which is written to: a
    device, a pipe, one of the process's own descriptors.
    """

    path: Path
    before: os.stat_result | None
    stream: bool = False
    descriptor: int | None = None

    @property
    def is_writable(self) -> bool:
        """Whether there is something that may be written to."""
        return self.before is not None and os.access(self.path, os.W_OK)


def place_of(path: Path_) -> Place:
    """Find the file that is written to by a path. Raises LucioleError or OSError where nothing
    can.
    """
    descriptor = own_descriptor(path)
    if descriptor is not None:
        return Place(Path(path), os.fstat(descriptor), True, descriptor)
    place = Place(Path(os.path.realpath(path)), _found(path))
    if place.before is not None and stat.S_ISDIR(place.before.st_mode):
        raise refusal(path, "it is a folder")
    if place.before is None or stat.S_ISREG(place.before.st_mode):
        _check_folder(path, place)
        return place
    if not place.is_writable:
        raise refusal(path, "it is no file, and cannot be written to")
    return Place(place.path, place.before, True)


def own_descriptor(path: Path_) -> int | None:
    """Find the number of this process's descriptor that a path stands for: 1 for
    ``/dev/stdout``.
    """
    at, own = os.fspath(path), f"/proc/{os.getpid()}/fd"
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(at)
        if name.isdecimal() and os.path.realpath(folder) == own:
            return int(name)
        if not os.path.islink(at):
            return None
        at = os.path.join(folder, os.readlink(at))
    return None


def refusal(path: Path_, why: str) -> LucioleError:
    """Word the error for a path that cannot be written."""
    return LucioleError(f"cannot write {os.fspath(path)}: {why}")


def _found(path: Path_) -> os.stat_result | None:
    """Return the status of the file that a path leads to, None for no file and for a link to
    none.
    """
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _check_folder(path: Path_, place: Place) -> None:
    """Refuse a file in a folder that is not there, or takes none while there is none to write."""
    folder = place.path.parent if os.path.islink(path) else Path(path).parent
    if not folder.is_dir():
        raise refusal(path, f"there is no folder {folder}")
    if not place.is_writable and not os.access(folder, os.W_OK | os.X_OK):
        raise refusal(path, f"folder {folder} cannot be written")
