"""Keep compiled functions: in a folder for all of the user's processes, else in one for this
process alone.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from luciole.kernels.jit import trust

SOURCES = Path(__file__).parents[1]
"""The folder of all kernels."""

VERSIONS = 8
"""How many versions of luciole and its compiler keep their folders: those used last."""

UNFINISHED = "unfinished-"
"""Beginning of the names of files that are being written."""

_DAY = 24 * 60 * 60
_LOST = 10 * 60
"""Seconds after which the writer of an unfinished file is no more."""


@dataclass
class KernelCache:
    """Files in a folder that nobody else writes."""

    folder: Path | None
    """None where there is no place for one: nothing is kept."""

    fault: str = ""
    """Why later processes will not find the files that are written; empty where they will."""

    compiled: int = 0
    """How many functions this process had to compile."""

    written: bool = False
    """Whether this process has tried to write."""

    def read(self, name: str) -> bytes:
        """Read a file, empty where there is none or somebody else may have written it."""
        with suppress(OSError):
            return trust.read_file(self.folder / name) if self.folder else b""
        return b""

    def write(self, name: str, content: bytes) -> None:
        """Write a file at once, so that another process never reads half of it. Where that fails
        (a full disk, a folder that can only be read) the process goes on without, and people are
        told once why kernels are compiled anew.
        """
        was_told = bool(self.fault and self.compiled)
        self.put(name, content)
        self.compiled += 1
        if self.fault and not was_told:
            logging.getLogger("luciole").warning("luciole: %s", self.complaint)

    def put(self, name: str, content: bytes) -> None:
        """Write a file as ``write`` does; where that fails, ``fault`` says why."""
        if self.folder is None:
            return
        if not self.written and not self.fault:  # what stands beside a private folder is not ours
            _remove_unfinished(self.folder)
            _remove_versions(self.folder)
        self.written = True
        try:
            _write_whole(self.folder / name, content)
        except OSError as error:
            self.fault = self.fault or f"{str(self.folder)!r}: {error.strerror}"

    @property
    def complaint(self) -> str:
        """A sentence that says the fault and the remedy."""
        return (
            f"compiled kernels cannot be kept for later runs: {self.fault}; "
            "LUCIOLE_CACHE may name another folder"
        )

    def names(self) -> list[str]:
        """Return the names of the files that are kept."""
        return sorted(path.name for path in self.folder.glob("*.o")) if self.folder else []

    def contents(self) -> tuple[int, int]:
        """Count the functions that are kept, and their bytes."""
        return contents_of(self.folder)


def contents_of(folder: Path | None) -> tuple[int, int]:
    """Count the functions in a folder, and their bytes."""
    sizes = [file.stat().st_size for file in folder.glob("*.o")] if folder else []
    return len(sizes), sum(sizes)


def _write_whole(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _remove_unfinished(folder: Path) -> None:
    """Remove the files that killed writers left behind."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _LOST:
                path.unlink()


def _remove_versions(folder: Path) -> None:
    """Remove the folders of other versions that have not been used for longest."""
    with suppress(OSError):
        versions = [p for p in folder.parent.iterdir() if re.fullmatch("[0-9a-f]{16}", p.name)]
        others = sorted((p for p in versions if p != folder), key=lambda p: p.lstat().st_mtime)
        for path in others[: -(VERSIONS - 1)]:
            shutil.rmtree(path, ignore_errors=True)


def _mark_used(folder: Path) -> None:
    """Set a folder's time to now, once a day, to show that it was used."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


@functools.cache
def cache_version() -> str:
    """Digest the source of all kernels, the compiler's version and Python's binary interface, as
    part of the cache's path: code never outlives what it was made from.
    """
    versions = [metadata.version(package) for package in ("numba", "llvmlite")]
    versions += [str(sys.implementation.cache_tag), *EXTENSION_SUFFIXES]
    files = sorted(SOURCES.rglob("*.py"))
    return digest(" ".join(versions).encode() + b"".join(path.read_bytes() for path in files))


def digest(content: bytes) -> str:
    """Compute sixteen letters that tell contents apart."""
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def kernel_cache() -> KernelCache:
    """Return the cache of this process: below ``LUCIOLE_CACHE``, else in the user's cache. Its
    files are executed: where somebody else could have written them, a folder for this process alone
    takes its place.
    """
    try:
        folder = _wanted_root() / "kernels" / cache_version()
        trust.make_folder(folder)
    except (trust.UntrustedError, OSError) as error:
        return KernelCache(_private_folder(), trust.text_of(error))
    _mark_used(folder)
    return KernelCache(folder)


def _wanted_root() -> Path:
    chosen, user = os.environ.get("LUCIOLE_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if chosen:
        return Path(os.path.abspath(chosen))
    if os.path.isabs(user):  # any other says nothing, by its specification
        return Path(os.path.normpath(user)) / "luciole"
    home = trust.home()
    if home is None:
        raise trust.UntrustedError("there is no home")
    return home / ".cache" / "luciole"


def _private_folder() -> Path | None:
    """Make a folder that is removed when this process ends, and remove the folders of others that
    were killed; None where no place is safe.
    """
    try:
        parent = Path(os.path.realpath(tempfile.gettempdir()))
        _remove_left_behind(parent)
        folder = parent / f"luciole-{os.urandom(8).hex()}"
        trust.make_folder(folder)
    except (trust.UntrustedError, OSError):
        return None
    with suppress(OSError):  # there are disks without locks
        _locked(folder)  # as long as the process lives, and what it forked
    atexit.register(_remove_private, folder, os.getpid())
    return folder


def _locked(folder: Path) -> int:
    """Open and lock a private folder. Raises OSError where another process has."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_left_behind(parent: Path) -> None:
    """Remove private folders of the user's that no process has locked for some time."""
    for path in parent.glob("luciole-" + 16 * "[0-9a-f]"):
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _LOST:
                handle = _locked(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(handle)


def _remove_private(folder: Path, owner: int) -> None:
    """Remove a folder, in the process that made it: not in those that it forked."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
