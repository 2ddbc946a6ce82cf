"""Folders and files that nobody else can have changed: what lies there may be executed.

A folder is safe where it and every folder above it belong to the user or to root, cannot be written
by others and are no links; one in which everybody keeps what is theirs (sticky, as ``/tmp``) may
stand above. The user's home ends the climb: who can exchange that can have Python itself run what
they like. The walk begins at the top. Once a folder is known to be safe nobody else can exchange
what it holds, so that a name stays what it was when it was looked at.

POSIX access lists are covered where they let others write: the group's bits show the widest grant.
Lists of other kinds (NFSv4, macOS) are not looked at. Windows shows no owners: nothing is safe.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from luciole.ir import LucioleError


class UntrustedError(LucioleError):
    """A folder that others can change, or whose owner cannot be told."""


def text_of(error: UntrustedError | OSError) -> str:
    """Return the reason why a folder is not used, in a few words."""
    if isinstance(error, OSError):
        return f"{str(error.filename)!r}: {error.strerror}"
    return str(error)


def home() -> Path | None:
    """Return the user's home: ``HOME``, else as the system has it; None where there is none."""
    folder = os.environ.get("HOME") or _home_of_record()
    return Path(os.path.normpath(folder)) if os.path.isabs(folder) else None


def _home_of_record() -> str:
    with suppress(ImportError, KeyError):  # Windows; a user without a name, as in containers
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_dir
    return ""


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone.

    Raises UntrustedError for the first that is there and not safe, before anything is made below
    it, and OSError.
    """
    _walk(folder, _make)


def _make(path: Path) -> None:
    if not os.path.lexists(path):
        with suppress(FileExistsError):  # another process was faster
            path.mkdir(mode=0o700)


def check_folder(folder: Path) -> None:
    """Refuse a folder that others can have changed, as ``make_folder`` does, and make none."""
    _walk(folder, lambda _: None)


def _walk(folder: Path, visit: Callable[[Path], None]) -> None:
    """Go down to a folder: visit each on the way, and refuse the first that is not safe."""
    refuse_mixed_rights()
    top, *below = _from_the_top(folder)
    _refuse_unless_safe(top, top.stat(), above=True)
    for path in below:
        visit(path)
        _refuse_unless_safe(path, path.lstat(), above=path != folder)


def _from_the_top(folder: Path) -> Iterator[Path]:
    """Yield the home, else the root of the file system, then every folder on the way down."""
    top = home()
    for path in reversed([folder, *folder.parents]):
        if top not in folder.parents or path == top or top in path.parents:
            yield path


def refuse_mixed_rights() -> None:
    """Refuse where owners mean nothing: in a process that has the rights of several users or groups
    (setuid, setgid), one of whom could give it code, and on Windows. Raises UntrustedError.
    """
    if sys.platform == "win32":
        raise UntrustedError("this system does not show whose a folder is")
    users, groups = {os.getuid(), os.geteuid()}, {os.getgid(), os.getegid()}
    if sys.platform == "linux":  # saved ones as well, which can be taken up again
        users, groups = set(os.getresuid()), set(os.getresgid())
    if len(users) > 1 or len(groups) > 1:
        raise UntrustedError("this process has the rights of several users or groups (setuid)")


def _refuse_unless_safe(path: Path, status: os.stat_result, above: bool) -> None:
    name = repr(str(path))
    if stat.S_ISLNK(status.st_mode):
        raise UntrustedError(f"{name} is a link, not a folder")
    if not stat.S_ISDIR(status.st_mode):
        raise UntrustedError(f"{name} is not a folder")
    if not _is_ours(status):
        raise UntrustedError(f"{name} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if _is_open(status) and not (above and status.st_mode & stat.S_ISVTX):
        mode = stat.S_IMODE(status.st_mode)
        raise UntrustedError(f"others can write to {name} (mode {mode:o}, needs chmod go-w)")


def _is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to the user or to root."""
    return status.st_uid in (os.geteuid(), 0)


def _is_open(status: os.stat_result) -> bool:
    """Return whether others than the owner may write to a file."""
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def read_file(path: Path) -> bytes:
    """Read a file in a safe folder. Raises OSError where it cannot be read, is a link or no plain
    file, has other names too, belongs to somebody else or can be written by others.
    """
    with open(path, "rb", opener=_opened) as file:
        return file.read()


def _opened(path: str, flags: int) -> int:
    """Open a file and check the opened one, not its name. No link is followed and no pipe waited
    for.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    if plain and _is_ours(status) and not _is_open(status):
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{path!r} may be somebody else's")
