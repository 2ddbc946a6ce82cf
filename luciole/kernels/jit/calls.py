"""Make the compiled driver a builtin function of Python without arguments.

That takes 60 ns, 30 of them for letting other threads of Python run meanwhile; ``ctypes`` takes
190. The function's own object is a ``bytes`` with the numbers that compiled code needs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from luciole.kernels.jit.compiling import Function, Steps
from luciole.kernels.jit.emits import Builder, Int64, emits, types
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.scalars import I64, call

_CONTENTS = bytes.__basicsize__ - 1
"""Where the contents of a ``bytes`` object begin."""

_NO_ARGUMENTS = 0x0004
"""METH_NOARGS of CPython's ``PyMethodDef``."""


class Step(Record):
    """A kernel and its record, both 0 behind the last step."""

    kernel: int
    record: int


class Known(Record):
    """The contents of a function's own ``bytes``: a table of ``Step``, functions of Python's C
    interface, and the address of None.
    """

    steps: int
    save_thread: int
    restore_thread: int
    count_reference: int
    none: int


_step_at, _known_at = reader(Step), reader(Known)


@emits
def _call_python(builder: Builder, function: Int64, argument: Int64) -> Int64:
    """Call a function of Python's C interface with one argument; gives what it returns."""
    kind = ir.FunctionType(I64, [I64])
    return builder.call(builder.inttoptr(function, kind.as_pointer()), [argument])


def _invoke(own: int, nothing: int) -> int:
    """Run the steps that ``own`` knows of, up to one of zeros; gives None."""
    known = _known_at(own + _CONTENTS, 0)
    thread = _call_python(known.save_thread, 0)
    steps, row = known.steps, 0
    while _step_at(steps, row).kernel:
        step = _step_at(steps, row)
        call(step.kernel, step.record)
        row += 1
    _call_python(known.restore_thread, thread)
    _call_python(known.count_reference, known.none)
    return known.none


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
def _functions() -> dict[str, int]:
    """Return the addresses of functions of Python's C interface, by their fields of ``Known``."""
    names = {
        "save_thread": "PyEval_SaveThread",
        "restore_thread": "PyEval_RestoreThread",
        "count_reference": "Py_IncRef",
    }
    addresses = {
        k: ctypes.cast(ctypes.pythonapi[n], ctypes.c_void_p).value for k, n in names.items()
    }
    return {name: address or 0 for name, address in addresses.items()}


def caller(steps: Steps) -> Callable[[], None]:
    """Make a function that runs kernels one after the other; their records must outlive it."""
    ended: NDArray[np.int64] = np.vstack([steps, np.zeros((1, 2), np.int64)])
    own = Known(steps=ended.ctypes.data, none=id(None), **_functions()).words().tobytes()
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    call_: Callable[[], None] = make(ctypes.addressof(_method()), own, ended)  # keeps both alive
    return call_
