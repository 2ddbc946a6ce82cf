"""Keep NumPy's linear algebra on one thread: the matrices of layers are so small that threads spend
more time waiting for each other than they save.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np

_PREFIXES, _SUFFIXES = ("scipy_", ""), ("64_", "64", "")
"""What stands around OpenBLAS's names in NumPy's wheels and in Linux distributions."""


class _OpenBlas:
    """The number of threads of NumPy's OpenBLAS, and how many ask for one alone."""

    def __init__(self, library: ctypes.CDLL, prefix: str, suffix: str) -> None:
        self.count = library[f"{prefix}openblas_get_num_threads{suffix}"]
        self._set = library[f"{prefix}openblas_set_num_threads{suffix}"]
        self._lock, self._asking, self._before = Lock(), 0, 1

    def begin(self) -> None:
        """Go on with one thread."""
        with self._lock:
            if not self._asking:
                self._before = int(self.count())
                self._set(1)
            self._asking += 1

    def end(self) -> None:
        """Go on with as many threads as before, when nobody else asks for one."""
        with self._lock:
            self._asking -= 1
            if not self._asking:
                self._set(self._before)


@cache
def open_blas() -> _OpenBlas | None:
    """Find the OpenBLAS that NumPy uses, None where it uses another library."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            try:
                return _OpenBlas(library, prefix, suffix)
            except AttributeError:
                continue
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread of linear algebra, where that can be told."""
    library = open_blas()
    if library is None:
        yield
        return
    library.begin()
    try:
        yield
    finally:
        library.end()
