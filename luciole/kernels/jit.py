"""The only module that imports numba: how kernels are compiled, cached and called.

Every kernel is a function of one argument, a pointer to a record of int64 numbers (addresses,
sizes, parameters). It is compiled when its address is first asked for and kept on disk; nothing is
compiled by importing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types as _numba_types
from numba.extending import intrinsic

import luciole

CACHE_VERSION = "1"
"""Part of the cache's path. Raise it when an intrinsic changes: numba does not notice that by
itself.
"""

Pointer = Any
"""A C pointer while a kernel is compiled: what ``floats`` and ``words`` make of an address."""

Record = Pointer
"""A kernel's argument while it is compiled: a C pointer to int64."""

types: Any = _numba_types
_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic

_SIGNATURE = types.void(types.CPointer(types.int64))


def cache_folder() -> Path:
    """Where compiled kernels are kept: ``LUCIOLE_CACHE``, else the user's cache, else a temporary
    folder.
    """
    name = f"{luciole.__version__}-{CACHE_VERSION}"
    given = os.environ.get("LUCIOLE_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    for root in (
        Path(given) if given else user / "luciole",
        Path(tempfile.gettempdir()) / f"luciole-{os.getuid()}",
    ):
        folder = root / "kernels" / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
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


def _compile(decorator: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return decorator(function)
    finally:
        numba.config.CACHE_DIR = previous


_I64 = ir.IntType(64)


@_intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits of an unsigned word, as the same type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@_intrinsic
def floats(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.int64), generate


@_intrinsic
def words(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to uint32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(32).as_pointer())

    return types.CPointer(types.uint32)(types.int64), generate


@_intrinsic
def _call(typing_context: Any, address: Any, record: Any) -> Any:
    """Call the kernel at an address on the record at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_I64.as_pointer()])
        target = builder.inttoptr(args[0], function.as_pointer())
        builder.call(target, [builder.inttoptr(args[1], _I64.as_pointer())])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _run_steps(steps: Any) -> None:
    for i in range(steps.shape[0]):
        _call(steps[i, 0], steps[i, 1])


_driver: Any = None


def run(steps: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """Run kernels one after the other: rows of (address of the kernel, address of its record)."""
    global _driver
    if _driver is None:
        _driver = _compile(numba.njit("void(int64[:,::1])", cache=True, nogil=True), _run_steps)
    _driver(steps)
