"""A program that reads one HDF5 file for ``luciole.importers.hdf5``, so that nobody else has to.

The HDF5 library trusts files: about one in two thousand damaged ones crashes it, and some make it
take all memory or never end. Here that ends this process alone. Each request is a line of JSON,
``[name, ...arguments]``; so is each answer, with the number of bytes that follow it. Run by its
path, it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

_SPARE_BYTES = 128 << 20
"""Memory that the library may take besides the bytes that are read."""
_LARGEST_CHUNK = 16 << 20
"""Bytes: more than that is for datasets that have them."""
_BYTES_PER_SECOND = 10 << 20
_LONGEST_TEXT = 64 << 20


class RefusedError(Exception):
    """A request that is not fulfilled; the sentence says why."""


class _File:
    """The file, and the requests that it answers. Paths are names with slashes between them."""

    def __init__(self, path: str, seconds: float) -> None:
        self.seconds = seconds
        self.limit(0)
        self.file = h5py.File(path, "r", rdcc_nbytes=2 * _LARGEST_CHUNK)

    def limit(self, size: int) -> None:
        """End from now on after some seconds of computing, and take no more memory than that."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, self.seconds + size / _BYTES_PER_SECOND)
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            bound = used + _SPARE_BYTES + 2 * size
            if most != resource.RLIM_INFINITY:
                bound = min(bound, most)
            resource.setrlimit(resource.RLIMIT_AS, (bound, most))

    def open(self) -> None:
        """Do nothing more than was done already."""

    def members(self, path: str) -> list[str]:
        """List the names in a group."""
        return list(self._at(path, h5py.Group))

    def has(self, path: str) -> bool:
        """Return whether something is stored at a path."""
        *groups, last = _names(path) or [""]
        group = self.file
        for name in groups:
            if not group.id.links.exists(_raw(name)):
                return False
            group = self._child(group, name, h5py.Group)
        return bool(group.id.links.exists(_raw(last)))

    def attributes(self, path: str) -> list[str]:
        """List the names of a group's attributes."""
        return list(self._at(path, h5py.Group).attrs)

    def text(self, path: str, name: str) -> str:
        """Read a text among a group's attributes."""
        attributes = self._at(path, h5py.Group).attrs
        size = attributes.get_id(name).get_storage_size()
        if attributes.get_id(name).shape != () or size > _LONGEST_TEXT:
            raise RefusedError(f"attribute {name!r} is no text")
        content = attributes[name]
        content = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        if not isinstance(content, str):
            raise RefusedError(f"attribute {name!r} is no text")
        return content

    def dataset(self, path: str) -> list[Any]:
        """Read the shape and the element type of a dataset."""
        dataset = self._dataset(path)
        return [list(dataset.shape), dataset.dtype.str]

    def read(self, path: str, first: int, end: int) -> Any:
        """Read the contents, or entries of the first axis where there are axes."""
        dataset = self._dataset(path)
        entries = min(end, dataset.shape[0]) - first if dataset.shape else 1
        size = dataset.dtype.itemsize * max(entries, 0)
        for extent in dataset.shape[1:]:
            size *= extent
        self.limit(size)
        return np.ascontiguousarray(dataset[first:end] if dataset.shape else dataset[()])

    def _dataset(self, path: str) -> Any:
        dataset = self._at(path, h5py.Dataset)
        storage = dataset.id.get_create_plist()
        if storage.get_layout() == h5py.h5d.VIRTUAL or storage.get_external_count():
            raise RefusedError(f"{dataset.name!r} is stored in other files, which are not read")
        if dataset.shape is None or dataset.dtype.kind not in "biufc":
            raise RefusedError(f"{dataset.name!r} holds no array of numbers")
        _check_storage(dataset, storage)
        return dataset

    def _at(self, path: str, kind: Any) -> Any:
        """Find the object stored at a path, which must be a group or a dataset."""
        names = _names(path)
        entry = self.file
        for number, name in enumerate(names, 1):
            entry = self._child(entry, name, kind if number == len(names) else h5py.Group)
        return entry

    def _child(self, group: Any, name: str, kind: Any) -> Any:
        what, raw = kind.__name__.lower(), _raw(name)
        if not group.id.links.exists(raw):
            shown = ", ".join(map(repr, list(group)[:5])) or "nothing"
            raise RefusedError(f"no {what} {name!r} in {group.name!r}, found {shown}")
        if group.id.links.get_info(raw).type != h5py.h5l.TYPE_HARD:
            raise RefusedError(f"{name!r} in {group.name!r} is a link, which is not followed")
        child = group[name]
        if not isinstance(child, kind):
            raise RefusedError(f"{child.name!r} is no {what}")
        return child


_REQUESTS: dict[str, Callable[..., Any]] = {
    "open": _File.open,
    "members": _File.members,
    "has": _File.has,
    "attributes": _File.attributes,
    "text": _File.text,
    "dataset": _File.dataset,
    "read": _File.read,
}


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _check_storage(dataset: Any, storage: Any) -> None:
    """Refuse sizes that a small file can claim: what was never written, and huge chunks."""
    size = int(dataset.dtype.itemsize)
    for extent in dataset.shape:
        size *= extent
    chunked = storage.get_layout() == h5py.h5d.CHUNKED
    stored = dataset.id.get_storage_size()
    if size and stored < (1 if chunked else size):
        raise RefusedError(f"{dataset.name!r} has {size} bytes, which were never written")
    if chunked:
        chunk = int(dataset.dtype.itemsize)
        for extent in storage.get_chunk():
            chunk *= int(extent)
        if chunk > max(size, _LARGEST_CHUNK):
            raise RefusedError(f"{dataset.name!r} has {size} bytes in chunks of {chunk}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _answer(file: Callable[[], _File], request: list[Any]) -> tuple[dict[str, Any], Any]:
    """Answer a request: with a line, and with the bytes that follow it."""
    try:
        opened = file()
        opened.limit(0)
        name, *arguments = request
        answer = _REQUESTS[name](opened, *arguments)
    except RefusedError as error:
        return {"refused": str(error)}, b""
    except Exception as error:  # no list of what a library raises is complete
        return {"damaged": _one_line(error)}, b""
    if isinstance(answer, np.ndarray):
        return {"bytes": answer.nbytes}, answer.reshape(-1).view(np.uint8).data
    return {"found": answer, "bytes": 0}, b""


def main(path: str, seconds: float) -> None:
    """Answer requests until there are no more of them."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library may print must not get among the answers
    opened: list[_File] = []

    def file() -> _File:
        if not opened:
            opened.append(_File(path, seconds))
        return opened[0]

    for line in sys.stdin.buffer:
        head, body = _answer(file, json.loads(line))
        answers.write(json.dumps(head).encode() + b"\n")
        answers.write(body)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
