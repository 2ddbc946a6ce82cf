"""Untrusted HDF5 files, read by a process of their own: see ``hdf5_process``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import FormatError
from luciole.ir.value import element_count
from luciole.schema.printable import shorten

SECONDS = 20.0
"""Of computing, for one request; what is long has more."""

_START = """
import sys
last = 2 + int(sys.argv[1])
sys.path[:] = sys.argv[2:last]
import runpy
sys.argv[:] = sys.argv[last:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Begins with the packages of this process: a file of the current folder must not be imported."""


class Hdf5File:
    """An open file. Paths inside of it are names with slashes between them.

    Every call raises FormatError for what is not there, for links, for datasets that other files
    hold or that were never written, and for what the HDF5 library cannot read or does not survive.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout
        self._ask("the file", "open")

    def members(self, path: str) -> list[str]:
        """List the names in a group."""
        return [str(name) for name in self._ask(f"group {path!r}", "members", path)]

    def has(self, path: str) -> bool:
        """Return whether something is stored at a path."""
        return bool(self._ask("the file", "has", path))

    def attributes(self, path: str) -> list[str]:
        """List the names of a group's attributes."""
        return [str(n) for n in self._ask(f"the attributes of {path!r}", "attributes", path)]

    def text(self, path: str, name: str) -> str:
        """Read a text among a group's attributes."""
        return str(self._ask(f"attribute {name!r}", "text", path, name))

    def dataset(self, path: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Read the shape and the element type of a dataset of numbers."""
        shape, dtype = self._ask(repr(path), "dataset", path)
        return tuple(map(int, shape)), np.dtype(str(dtype))

    def read(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], first: int) -> Array:
        """Read entries of a dataset from ``first`` on, in the shape that is wanted; of one number
        itself.
        """
        array = np.empty(element_count(shape) * dtype.itemsize, np.uint8)
        end = first + shape[0] if shape else 0
        answer = self._ask(repr(path), "read", path, first, end, into=array)
        if answer is not array:
            raise FormatError(f"{path!r} is damaged: it is not as long as it says")
        filled: Array = array.view(dtype).reshape(shape)
        return filled

    def _ask(self, what: str, *request: object, into: Array | None = None) -> Any:
        """Send a request and read its answer: what was found, or the array where its contents
        came.
        """
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()
        except OSError:
            raise self._died(what) from None
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise self._died(what)
        answer = json.loads(line)
        if "refused" in answer:
            raise FormatError(shorten(str(answer["refused"]), 1000))
        if "damaged" in answer:
            why = shorten(str(answer["damaged"]), 1000)
            raise FormatError(f"{what} is damaged or cannot be read: {why}")
        if into is None or answer["bytes"] != into.nbytes:
            return answer.get("found")
        if _fill(self._answers, into) < into.nbytes:
            raise self._died(what)
        return into

    def _died(self, what: str) -> FormatError:
        """Refuse a file that the process did not survive."""
        return FormatError(f"{what} is damaged: {_end(self._process.wait())}")


def _fill(file: IO[bytes], array: Array) -> int:
    """Read an array's bytes; return how many there were."""
    filled = 0
    while filled < array.nbytes:
        chunk = file.read(min(array.nbytes - filled, 1 << 20))
        if not chunk:
            break
        array[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    return filled


@contextmanager
def open_hdf5(path: str | os.PathLike[str]) -> Iterator[Hdf5File]:
    """Open a file, as long as the context lasts."""
    paths = [entry for entry in sys.path if isinstance(entry, str)]
    program = str(Path(__file__).with_name("hdf5_process.py"))
    start = [sys.executable, "-c", _START, str(len(paths)), *paths]
    with subprocess.Popen(
        [*start, program, os.fspath(path), str(SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        try:
            yield Hdf5File(process)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process, whatever it does."""
    process.kill()
    with suppress(OSError):  # of what it was not sent before it ended
        if process.stdin is not None:
            process.stdin.close()


def _end(code: int) -> str:
    """Return a sentence on how the process ended."""
    if hasattr(signal, "SIGPROF") and code == -signal.SIGPROF:
        return "reading it does not end"
    if code < 0:
        return f"reading it crashes the HDF5 library ({signal.Signals(-code).name})"
    return f"reading it ends the HDF5 library's process with {code}"
