"""Compile kernels and helpers, and call them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numpy.typing import NDArray

from luciole.kernels.jit.emits import Kind, types
from luciole.kernels.jit.machine_code import machine_code
from luciole.kernels.jit.objects import cached, in_c_library, keep, python_call
from luciole.kernels.jit.pipeline import HelperCompiler
from luciole.kernels.jit.record import Record, numba_type
from luciole.kernels.jit.scalars import call, nanoseconds, number, set_number
from luciole.kernels.jit.together import is_put_off

P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")


class Function:
    """A function that is compiled, or read from the cache, when it is first needed."""

    def __init__(self, function: Callable[..., object], signature: Kind) -> None:
        self.function = function
        self.name = _name(function)
        self._signature = signature
        self._address: int | None = None

    @property
    def address(self) -> int:
        """Where the machine code begins."""
        if not self.is_there():
            self.keep(*self.compile())
        assert self._address is not None, "it was kept"
        return self._address

    def is_there(self) -> bool:
        """Return whether it was compiled before, by whichever process."""
        if self._address is None:
            self._address = cached(self.name)
        return self._address is not None

    def compile(self) -> tuple[str, bytes]:
        """Compile it; returns its name as C calls it, and its object file."""
        return machine_code(self.function, self._signature)

    def keep(self, symbol: str, code: bytes) -> None:
        """Load the machine code, and put it into the cache for later processes."""
        self._address = keep(self.name, symbol, code)


class Kernel(Function):
    """A ``void(int64*)`` function of a record: of a class, or plain numbers behind a pointer."""

    def __init__(self, function: Callable[[R], None]) -> None:
        (record,) = (kind for name, kind in get_type_hints(function).items() if name != "return")
        is_named = isinstance(record, type) and issubclass(record, Record)
        argument = numba_type(record) if is_named else types.CPointer(types.int64)
        super().__init__(function, types.void(argument))

    @property
    def address(self) -> int:
        """Where the machine code begins; 0 where it is compiled first, see ``with_compiled``."""
        return 0 if is_put_off(self) else super().address


def kernel(function: Callable[[R], None]) -> Kernel:
    """Declare a kernel. Its body sees one argument: the record that its annotation names, whose
    fields are read and written by their names.

    What it closes over are plain numbers and functions: its name in the cache is made of them.
    """
    return Kernel(function)


def _name(function: Callable[..., object]) -> str:
    """Make a name that tells functions of the same source apart: by what they close over."""
    inside = [_plain(cell.cell_contents) for cell in function.__closure__ or ()]
    return f"{function.__module__}.{function.__qualname__}({', '.join(inside)})"


def _plain(closed_over: object) -> str:
    if isinstance(closed_over, (bool, int, float, str, tuple)):
        return repr(closed_over)
    if isinstance(closed_over, Dispatcher):
        return _name(closed_over.py_func)
    if isinstance(closed_over, _Intrinsic):
        return _name(closed_over._defn.__wrapped__)
    raise TypeError(f"a kernel closes over {closed_over!r}: only numbers and helpers will do")


def separate(function: Callable[P, X]) -> Callable[P, X]:
    """Declare a helper that kernels call: numba keeps it a function of its own, and LLVM decides
    whether its body becomes part of a caller.
    """
    return _helper(function, inline="never")


def inlined(function: Callable[P, X]) -> Callable[P, X]:
    """Declare a helper whose body becomes part of its caller, so that tiles stay in registers."""
    return _helper(function, forceinline=True)


def _helper(function: Callable[P, X], **options: object) -> Callable[P, X]:
    made: Callable[P, X] = numba.njit(
        error_model="numpy",
        no_cpython_wrapper=True,  # nobody else calls it
        no_cfunc_wrapper=True,
        pipeline_class=HelperCompiler,
        **options,
    )(function)
    return made


@functools.cache
def compiled(function: Callable[..., object], arguments: int) -> Callable[..., int]:
    """Compile a function of int64 numbers for Python to call."""
    signature = types.int64(*[types.int64] * arguments)
    return python_call(Function(function, signature).address, arguments)


Steps = NDArray[np.int64]
"""Rows of (address of a kernel, address of its record)."""


def _time_steps(row: int, count: int, clock: int, kind: int, now: int, times: int) -> int:
    before = nanoseconds(clock, kind, now)
    for i in range(count):
        call(number(row + 16 * i), number(row + 16 * i + 8))
        after = nanoseconds(clock, kind, now)
        set_number(times + 8 * i, after - before)
        before = after
    return 0


def run_timed(steps: Steps) -> NDArray[np.int64]:
    """Run kernels; returns the nanoseconds that each took."""
    times, now = np.zeros(len(steps), np.int64), np.zeros(2, np.int64)
    run, clock = compiled(_time_steps, 6), in_c_library("clock_gettime")
    moment, elapsed = now.ctypes.data, times.ctypes.data
    run(steps.ctypes.data, len(times), clock, time.CLOCK_MONOTONIC, moment, elapsed)
    return times
