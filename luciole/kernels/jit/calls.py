"""Make the compiled driver a builtin function of Python without arguments.

That takes 60 ns, 30 of them for letting other threads of Python run meanwhile; ``ctypes`` takes
190. The function's own object is a ``bytes`` with the numbers that compiled code needs.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from luciole.kernels.jit.compiling import Function, Steps
from luciole.kernels.jit.emits import Builder, Int64, emits, types
from luciole.kernels.jit.scalars import I64, call, number

_CONTENTS = bytes.__basicsize__ - 1
"""Where the contents of a ``bytes`` object begin."""

_NO_ARGUMENTS = 0x0004
"""METH_NOARGS of CPython's ``PyMethodDef``."""


@emits
def _call_python(builder: Builder, function: Int64, argument: Int64) -> Int64:
    """Call a function of Python's C interface with one argument; gives what it returns."""
    kind = ir.FunctionType(I64, [I64])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [argument])


def _invoke(own: int, nothing: int) -> int:
    """Run the rows at the first number of ``own``, up to one of zeros; gives None."""
    own += _CONTENTS
    row = number(own)
    thread = _call_python(number(own + 8), 0)
    while number(row):
        call(number(row), number(row + 8))
        row += 16
    _call_python(number(own + 16), thread)
    none = number(own + 32)
    _call_python(number(own + 24), none)
    return none


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


@functools.cache
def _method() -> _Method:
    compiled = Function(_invoke, types.int64(types.int64, types.int64))
    return _Method(b"invoke", compiled.address, _NO_ARGUMENTS, b"Run compiled kernels.")


@functools.cache
def _numbers() -> tuple[int, ...]:
    names = ("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef")
    functions = [ctypes.cast(ctypes.pythonapi[n], ctypes.c_void_p).value or 0 for n in names]
    return (*functions, id(None))


def caller(steps: Steps) -> Callable[[], None]:
    """Make a function that runs kernels one after the other; their records must outlive it."""
    ended: NDArray[np.int64] = np.vstack([steps, np.zeros((1, 2), np.int64)])
    own = struct.pack("5q", ended.ctypes.data, *_numbers())
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    call_: Callable[[], None] = make(ctypes.addressof(_method()), own, ended)  # keeps both alive
    return call_
