"""Archives of compiled kernels, to carry a cache to another machine: ZIP files of the cache's own
files, and of what they were made by.

Every file has its seal, which only files of the same version of luciole and its compiler have.
Machine code is executed: an archive is to be trusted as a program is.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable
from importlib import metadata

from luciole.ir import LucioleError
from luciole.kernels.jit.cache import cache_version, kernel_cache
from luciole.kernels.jit.objects import packed, unpacked, whole_file

_FACTS = "luciole-kernels.json"
"""The file that says what made the others."""

_NAME = re.compile(r"[A-Za-z0-9-]{1,60}-[0-9a-f]{16}\.o")
"""Names of the cache's files."""

_LARGEST, _MOST = 16 << 20, 1 << 30
"""Bytes of a file, and of all: kernels have some kilobytes."""

_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError),
    *(ValueError, TypeError, KeyError),
)
"""What reading a ZIP file and JSON raises that are damaged, locked or compressed in another way."""


def facts() -> dict[str, str]:
    """Return the versions of the compiler, and the digest of all that kernels depend on."""
    versions = {package: metadata.version(package) for package in ("numba", "llvmlite")}
    return {**versions, "python": str(sys.implementation.cache_tag), "version": cache_version()}


def archive_of(names: Iterable[str]) -> tuple[bytes, int]:
    """Make an archive of files of the cache, or of those that were made ahead; returns it, and how
    many files it holds: those that are not whole are left out.
    """
    whole_files = {name: whole_file(name) for name in sorted(names)}
    files = {name: packed(name, *whole) for name, whole in whole_files.items() if whole is not None}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(_entry(_FACTS), json.dumps({**facts(), "files": list(files)}))
        for name, content in files.items():
            archive.writestr(_entry(name), content)
    return target.getvalue(), len(files)


def _entry(name: str) -> zipfile.ZipInfo:
    """Make an entry without a time, so that the same kernels make the same archive."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def files_of(content: bytes) -> dict[str, bytes]:
    """Read the files of an archive, by name. Raises LucioleError for anything but a whole archive
    of this version of luciole and its compiler.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: _read(archive, name) for name in _names(archive)}
    except _BROKEN:
        raise LucioleError("is no whole archive of compiled kernels") from None


def _names(archive: zipfile.ZipFile) -> list[str]:
    """Read which files an archive holds, and refuse one that holds others or was made by other
    versions.
    """
    sizes = [entry.file_size for entry in archive.infolist()]
    if max(sizes, default=0) > _LARGEST or sum(sizes) > _MOST:
        raise ValueError("larger than kernels are")
    told = json.loads(archive.read(_FACTS))
    words = {key: str(told[key]) for key in facts()}
    names: list[str] = told["files"]
    if sorted([_FACTS, *names]) != sorted(archive.namelist()) or not all(
        map(_NAME.fullmatch, names)
    ):
        raise ValueError("other files than it says")
    if words != facts():
        made, here = _sentence(words), _sentence(facts())
        raise LucioleError(f"holds kernels of {made}; here it is {here}")
    return names


def _sentence(words: dict[str, str]) -> str:
    source = f"luciole's kernels {words['version']}"
    return f"{source}, numba {words['numba']}, llvmlite {words['llvmlite']}, {words['python']}"


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    content = archive.read(name)
    if unpacked(name, content) is None:
        raise ValueError("a kernel that is not whole")
    return content


def put_into_cache(files: dict[str, bytes]) -> None:
    """Write files to the cache. Raises LucioleError where later processes will not find them."""
    cache = kernel_cache()
    for name, content in files.items():
        if not cache.fault:
            cache.put(name, content)
    if cache.fault:
        raise LucioleError(cache.complaint)
