"""Compiled functions as machine code, which a later process runs without numba's compiler."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from luciole.kernels.jit.ahead import ahead_folders
from luciole.kernels.jit.cache import cache_version, digest, kernel_cache
from luciole.kernels.jit.classes import fitting

Compile = Callable[[], tuple[str, bytes]]
"""Gives a function's name and the object file that holds it."""

used: set[str] = set()
"""Files of the cache that hold what this process has loaded."""

_engines: list[Any] = []
"""Engines that own the loaded code, for good: somebody may hold an address."""


def cached(name: str) -> int | None:
    """Return the address of a function that was compiled before, None where none was: for this
    processor, else for a class that it belongs to.
    """
    for cpu in (_cpu(), *fitting()):
        file = _file_name(name, cpu)
        whole = whole_file(file)
        if whole is not None:
            used.add(file)
            return _load(*whole)
    return None


def keep(name: str, symbol: str, code: bytes) -> int:
    """Put a compiled function into the cache and load it; returns its address."""
    file = _file_name(name, _cpu())
    kernel_cache().write(file, packed(file, symbol, code))
    used.add(file)
    return _load(symbol, code)


def whole_file(file: str) -> tuple[str, bytes] | None:
    """Find a file of the cache, or one that was made ahead, and split it into a function's name and
    its object file; None where there is none that is whole.
    """
    for read in (kernel_cache().read, *(folder.read for folder in ahead_folders())):
        whole = unpacked(file, read(file))
        if whole is not None:
            return whole
    return None


def packed(file: str, symbol: str, code: bytes) -> bytes:
    """Join a function's name and its object file to the content of a file of the cache."""
    return f"{symbol} {_seal(file, symbol, code)}\n".encode() + code


def unpacked(file: str, content: bytes) -> tuple[str, bytes] | None:
    """Split a file's content into a function's name and its object file; None where they are
    damaged or another file's.
    """
    try:
        head, _, code = content.partition(b"\n")
        symbol, seal = head.decode().split(" ")
    except ValueError:
        return None
    return (symbol, code) if seal == _seal(file, symbol, code) else None


def _seal(file: str, symbol: str, code: bytes) -> str:
    """Compute a checksum for damaged and misplaced files; it keeps nobody out, because anybody can
    compute it.
    """
    return digest(f"{cache_version()}/{file} {symbol}\n".encode() + code)


def _load(symbol: str, code: bytes) -> int:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))


@functools.cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(codemodel="jitdefault", jit=True)


def _file_name(name: str, cpu: str) -> str:
    readable = "".join(c if c.isalnum() else "-" for c in name.removeprefix("luciole.kernels."))
    return f"{readable[:60]}-{digest(f'{name} {cpu}'.encode())}.o"


@functools.cache
def _cpu() -> str:
    """Return the processor that code is made for, as numba is told or finds out."""
    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    return f"{name} {llvm.get_host_cpu_features().flatten() if features is None else features}"


def python_call(address: int, arguments: int) -> Callable[..., int]:
    """Make a function of int64 numbers at an address one that Python calls; other threads of Python
    run meanwhile.
    """
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)(address)


@functools.cache
def in_c_library(name: str) -> int:
    """Return the address of a function of the C library."""
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


@functools.cache
def of_single(name: str) -> Callable[[float], float]:
    """Return a function of the C library from float to float, such as ``expf``, for Python to
    call.
    """
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(in_c_library(name))
