"""An allocator for NumPy's arrays that counts their bytes and refuses those beyond a limit.

NumPy takes the memory of an array from the handler that the present context has set, and gives it
back to the same one (NEP 49, "Data allocation strategies in NumPy"). Ours leaves the work to
NumPy's own one, and writes the size in front of each block. Any thread may free an array at any
time: counts are atomic.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any, ClassVar

from llvmlite import ir

from luciole.kernels.jit.compiling import Function, separate
from luciole.kernels.jit.emits import Address, Builder, Int64, emits, types
from luciole.kernels.jit.scalars import I64, number, set_number
from luciole.kernels.jit.threads import atomic_add

FRONT = 16
"""Bytes in front of a block, as many as keep it aligned: the first 8 hold its size with these."""

SET_HANDLER, GET_HANDLER = 304, 305
"""Numbers of functions in NumPy's C interface, which never change: numpy/__multiarray_api.h."""

_NAME = b"mem_handler"
_FUNCTIONS = ("malloc", "calloc", "realloc", "free")


class Allocator(ctypes.Structure):
    """NumPy's ``PyDataMemAllocator``."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("context", *_FUNCTIONS))


class Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", Allocator),
    )


class Counts(ctypes.Structure):
    """Bytes ``taken`` now, the ``most`` allowed, the ``highest`` number that were taken, and the
    last request ``refused`` (0: none); then who does the work.
    """

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("taken", "most", "highest", "refused")),
        ("base", Allocator),
    )


TAKEN, MOST, HIGHEST, REFUSED, BASE = (
    getattr(Counts, name).offset for name in ("taken", "most", "highest", "refused", "base")
)
MALLOC, CALLOC, REALLOC, FREE = (BASE + getattr(Allocator, name).offset for name in _FUNCTIONS)
"""Where the compiled functions find the fields of ``Counts``, in bytes; ``BASE`` is its context."""


# ------------------------------------------------------------------------------------- compiled
@emits
def _call_2(builder: Builder, function: Address, owner: Address, size: Int64) -> Int64:
    """Call the function of two numbers at an address."""
    return _call(builder, function, owner, size)


@emits
def _call_3(builder: Builder, function: Address, owner: Address, a: Int64, b: Int64) -> Int64:
    """Call the function of three numbers at an address."""
    return _call(builder, function, owner, a, b)


def _call(builder: Any, function: Any, *args: Any) -> Any:
    kind = ir.FunctionType(I64, [I64] * len(args))
    return builder.call(builder.inttoptr(function, kind.as_pointer()), args)


@separate
def _admit(counts: Any, size: Any) -> Any:
    """Count bytes; whether they may be taken."""
    now = atomic_add(counts + TAKEN, size)
    if now > number(counts + MOST):
        atomic_add(counts + TAKEN, -size)
        set_number(counts + REFUSED, size)
        return False
    if now > number(counts + HIGHEST):
        set_number(counts + HIGHEST, now)
    return True


@separate
def _begin(counts: Any, block: Any, size: Any, counted: Any) -> Any:
    """Return where the caller's part of a block of ``size`` bytes begins, of which ``counted`` were
    counted just now; 0 where there is no block.
    """
    if block == 0:
        atomic_add(counts + TAKEN, -counted)
        return 0
    set_number(block, size)
    return block + FRONT


def _malloc(counts: Any, size: Any) -> Any:
    whole = size + FRONT
    if size < 0 or not _admit(counts, whole):
        return 0
    block = _call_2(number(counts + MALLOC), number(counts + BASE), whole)
    return _begin(counts, block, whole, whole)


def _calloc(counts: Any, elements: Any, item: Any) -> Any:
    whole = elements * item + FRONT
    if whole < FRONT or not _admit(counts, whole):
        return 0
    block = _call_3(number(counts + CALLOC), number(counts + BASE), whole, 1)
    return _begin(counts, block, whole, whole)


def _realloc(counts: Any, place: Any, size: Any) -> Any:
    if place == 0:
        return _malloc_again(counts, size)
    block, whole = place - FRONT, size + FRONT
    growth = whole - number(block)
    if size < 0 or not _admit(counts, growth):
        return 0
    moved = _call_3(number(counts + REALLOC), number(counts + BASE), block, whole)
    return _begin(counts, moved, whole, growth)


_malloc_again = separate(_malloc)


def _free(counts: Any, place: Any, size: Any) -> Any:
    if place != 0:
        block = place - FRONT
        whole = number(block)
        _call_3(number(counts + FREE), number(counts + BASE), block, whole)
        atomic_add(counts + TAKEN, -whole)
    return 0


@functools.cache
def _allocator() -> tuple[int, ...]:
    """Return the addresses of the four compiled functions."""
    two, three = (types.int64(*[types.int64] * n) for n in (2, 3))
    compiled = ((_malloc, two), (_calloc, three), (_realloc, three), (_free, three))
    return tuple(Function(function, signature).address for function, signature in compiled)


# ----------------------------------------------------------------------------- NumPy's interface
def _numpy_function(index: int, arguments: int) -> Callable[..., Any]:
    """Return a function of NumPy's C interface from objects to an object."""
    try:
        core = importlib.import_module("numpy._core.multiarray")
    except ImportError:  # before NumPy 2
        core = importlib.import_module("numpy.core.multiarray")
    table = ctypes.cast(_inside(core._ARRAY_API), ctypes.POINTER(ctypes.c_void_p))
    objects = [ctypes.py_object] * (1 + arguments)
    return ctypes.PYFUNCTYPE(*objects)(table[index] or 0)


def _inside(capsule: Any, name: bytes | None = None) -> int:
    """Return the address in a capsule of C."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name))


def _capsule(address: int) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(address, _NAME, None)


install = _numpy_function(SET_HANDLER, 1)
"""Make NumPy take memory from a handler, in the present context; gives the one before."""


@functools.cache
def _base() -> Allocator:
    """Return the allocator that was in use before the first tally: it does the work."""
    present = _numpy_function(GET_HANDLER, 0)()
    allocator: Allocator = Handler.from_address(_inside(present, _NAME)).allocator
    return allocator


# ---------------------------------------------------------------------------------------- for us
class _Metered(ctypes.Structure):
    """A handler, and what it counts."""

    _fields_ = (("handler", Handler), ("counts", Counts))


class Tally:
    """A handler for NumPy and its counts.

    Arrays may outlive whoever counted them, at the end of the process even Python's modules: a
    tally is never freed, but used again when nothing that it counted is left.
    """

    _spare: ClassVar[list[Tally]] = []

    def __init__(self) -> None:
        memory = _Metered()
        self.counts: Counts = memory.counts
        self.counts.base = _base()
        allocator = Allocator(ctypes.addressof(self.counts), *_allocator())
        memory.handler = Handler(b"luciole", 1, allocator)
        self.handler = _capsule(ctypes.addressof(memory))
        for immortal in (memory, self.handler):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))

    @classmethod
    def take(cls, most: int) -> Tally:
        """Return a tally that counts from 0 and allows so many bytes."""
        free = [spare for spare in cls._spare if not spare.counts.taken]
        tally = free[0] if free else cls()
        if free:
            cls._spare.remove(tally)
        tally.counts.most, tally.counts.highest, tally.counts.refused = most, 0, 0
        return tally

    def give_back(self) -> None:
        """Keep a tally that is no longer counted with for the next user, though arrays may be
        left.
        """
        self._spare.append(self)
