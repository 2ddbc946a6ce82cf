"""Compiled functions on disk: machine code that a later process runs without numba."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

import luciole.kernels

Compile = Callable[[], tuple[str, bytes]]
"""Gives a function's name and the object file that holds it."""

_engines: list[Any] = []
"""What owns the code that was loaded, for good: somebody may hold an address."""


def address_of(name: str, compile_: Compile) -> int:
    """The address of a function, read from the cache, or compiled and put there."""
    path = cache_folder() / f"{_file_name(name)}.o"
    found = _read(path)
    symbol, code = found or compile_()
    if found is None:
        _write(path, f"{symbol} {_digest(code)}\n".encode() + code)
    return _load(symbol, code)


def _read(path: Path) -> tuple[str, bytes] | None:
    """A function's name and its object file, None where it is not there or not whole."""
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        symbol, digest = head.decode().split(" ")
    except (OSError, ValueError):
        return None
    return (symbol, code) if digest == _digest(code) else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


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


def _write(path: Path, content: bytes) -> None:
    """Write a file at once, so that another process never reads half of it; a full disk is no
    failure.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except OSError:
        pass


def _file_name(name: str) -> str:
    readable = "".join(c if c.isalnum() else "-" for c in name.removeprefix("luciole.kernels."))
    return f"{readable[:60]}-{_digest(f'{name} {_cpu()}'.encode())}"


@functools.cache
def _cpu() -> str:
    """The processor that code is made for, as numba is told or finds out."""
    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    return f"{name} {llvm.get_host_cpu_features().flatten() if features is None else features}"


@functools.cache
def cache_version() -> str:
    """A digest of all kernels' source and of the compiler's version, part of the cache's path, so
    that code never outlives what it was made from.
    """
    versions = "".join(metadata.version(package) for package in ("numba", "llvmlite"))
    files = (p for folder in luciole.kernels.__path__ for p in Path(folder).rglob("*.py"))
    return _digest(versions.encode() + b"".join(p.read_bytes() for p in sorted(files)))


@functools.cache
def cache_folder() -> Path:
    """Where compiled functions are kept: below ``LUCIOLE_CACHE``, else in the user's cache, else in
    a temporary folder.

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


def python_call(address: int, arguments: int) -> Callable[..., int]:
    """A function of int64 numbers at an address as one that Python calls; other threads of Python
    run meanwhile.
    """
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arguments)(address)


@functools.cache
def in_c_library(name: str) -> int:
    """The address of a function of the C library."""
    return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


@functools.cache
def of_single(name: str) -> Callable[[float], float]:
    """A function of the C library from float to float, such as ``expf``, for Python to call."""
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(in_c_library(name))
