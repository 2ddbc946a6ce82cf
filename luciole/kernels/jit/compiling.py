"""How kernels are compiled, kept on disk and called."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import luciole.kernels
from luciole.kernels.jit.scalars import Record, call, nanoseconds, types

_SIGNATURE = types.void(types.CPointer(types.int64))


@functools.cache
def cache_version() -> str:
    """A digest of all kernels' source, part of the cache's path.

    numba looks at the file of a kernel alone, so that it would go on with stale code when a helper
    or an intrinsic of another file changes.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in luciole.kernels.__path__:
        for path in sorted(Path(folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``LUCIOLE_CACHE``, else the user's cache, else a temporary
    folder.

    A folder that somebody else made is left alone: what lies in it would be executed.
    """
    given = os.environ.get("LUCIOLE_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    for root in (
        Path(given) if given else user / "luciole",
        Path(tempfile.gettempdir()) / f"luciole-{os.getuid()}",
    ):
        folder = root / "kernels" / cache_version()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            return folder
    return Path(tempfile.mkdtemp(prefix="luciole-"))


class Kernel:
    """A kernel that is compiled, or read from the cache, when its address is first needed."""

    def __init__(self, function: Callable[[Record], None]) -> None:
        self.function = function
        self._compiled: Any = None

    @property
    def address(self) -> int:
        """The address of the compiled ``void(int64*)`` function."""
        if self._compiled is None:
            self._compiled = _compile(
                numba.cfunc(_SIGNATURE, cache=True, error_model="numpy"), self.function
            )
        return int(self._compiled.address)


def kernel(function: Callable[[Record], None]) -> Kernel:
    """Declare a kernel. Its body sees one argument ``r``: ``r[0]``, ``r[1]``, ... are the record's
    numbers.
    """
    return Kernel(function)


def inline(function: Callable[..., Any]) -> Any:
    """A helper that kernels call; compiled into them."""
    return numba.njit(inline="never", error_model="numpy")(function)


def merged(function: Callable[..., Any]) -> Any:
    """A helper whose body becomes part of its caller: for what keeps tiles in registers."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # nobody else calls it
    return numba.njit(forceinline=True, error_model="numpy", **options)(function)


def _compile(decorator: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return decorator(function)
    finally:
        numba.config.CACHE_DIR = previous


Steps = NDArray[np.int64]
"""Rows of (address of a kernel, address of its record)."""


def _run_steps(steps: Any) -> None:
    for i in range(steps.shape[0]):
        call(steps[i, 0], steps[i, 1])


def _time_steps(steps: Any, clock: Any, times: Any) -> None:
    before = nanoseconds(clock[0], clock[1], clock[2])
    for i in range(steps.shape[0]):
        call(steps[i, 0], steps[i, 1])
        after = nanoseconds(clock[0], clock[1], clock[2])
        times[i] = after - before
        before = after


@functools.cache
def compiled(signature: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Python calls and that lets other threads of Python run meanwhile."""
    result: Callable[..., Any] = _compile(numba.njit(signature, cache=True, nogil=True), function)
    return result


@functools.cache
def driver() -> Callable[[Steps], None]:
    """What runs kernels one after the other."""
    return compiled("void(int64[:,::1])", _run_steps)


def run_timed(steps: Steps) -> NDArray[np.int64]:
    """Run kernels as ``driver`` does; returns the nanoseconds that each took."""
    times, now = np.zeros(len(steps), np.int64), np.zeros(2, np.int64)
    clock = np.array(
        [in_c_library("clock_gettime"), time.CLOCK_MONOTONIC, now.ctypes.data], np.int64
    )
    timing = "void(int64[:,::1], int64[::1], int64[::1])"
    compiled(timing, _time_steps)(steps, clock, times)
    return times


@functools.cache
def in_c_library(name: str) -> int:
    """The address of a function of the C library."""
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0
