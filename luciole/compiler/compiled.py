"""Run a network that was compiled into a shared library."""

from __future__ import annotations

import ctypes
import itertools
import json
import operator
import os
import shutil
import tempfile
import threading
import weakref
from _ctypes import dlclose
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luciole.ir import Array, LucioleError
from luciole.ir.errors import expect


@dataclass(frozen=True)
class _Tensor:
    """Name, type and shape of an input or an output, as the library describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    places: int | None

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> _Tensor:
        """Read a description. Raises TypeError, ValueError or KeyError for anything else."""
        shape = tuple(operator.index(extent) for extent in described["shape"])
        dtype, places = np.dtype(_text(described["dtype"])), described["places"]
        if min(shape, default=1) < 1 or dtype.kind not in "fiub":
            raise ValueError
        places = None if places is None else operator.index(places)
        return cls(_text(described["name"]), dtype.name, shape, places)

    def checked(self, array: Array) -> Array:
        """Return an array as the library reads it. Raises LucioleError for another one."""
        if array.dtype != self.dtype or array.shape != self.shape:
            own = f"{self.dtype} {list(self.shape)}"
            other = f"{array.dtype} {list(array.shape)}"
            raise LucioleError(f"input {self.name!r} is {own}, {other} was given")
        return np.ascontiguousarray(array)


class Compiled:
    """A network in a shared library that ``luciole compile --library`` made.

    The library is code that this process runs: load only what you or somebody you trust compiled.
    Threads may call it: tensors lie in memory of the library's own, so that one run waits for the
    other. Raises LucioleError for a file that is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        expect(path, (str, os.PathLike), "path: the path of a library")
        self._lock = threading.Lock()
        try:
            self._library = _Library(Path(path))
            described = self._library.description()
            self.name = _text(described["name"])
            self._inputs = [_Tensor.of(one) for one in described["inputs"]]
            self._outputs = [_Tensor.of(one) for one in described["outputs"]]
        except (OSError, AttributeError) as error:
            raise LucioleError(f"{os.fspath(path)} is no compiled network: {error}") from None
        except (TypeError, ValueError, KeyError, RecursionError):
            why = "it does not describe its inputs and outputs as luciole does"
            raise LucioleError(f"{os.fspath(path)} is no compiled network: {why}") from None

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run once: arrays by input name, of the types and shapes that were compiled; returns a
        fresh array for each output, in the model's order. Fixed point comes as the integers that it
        is, see ``places``.

        Raises LucioleError for other names, types or shapes.
        """
        call, gotten = self.bind(inputs)
        call()
        return gotten

    def bind(self, inputs: Mapping[str, Array]) -> tuple[Callable[[], None], list[Array]]:
        """Bind arrays: return a function that runs the network on their present contents, with
        little around it, and the arrays that it writes results to, one for each output. Arrays as
        for ``run``; arrays whose elements do not lie in order are copied, and later changes of them
        not seen.

        Raises LucioleError for other names, types or shapes; the function does where a run fails.
        """
        if set(inputs) != {tensor.name for tensor in self._inputs}:
            names = ", ".join(repr(t.name) for t in self._inputs)
            raise LucioleError(f"inputs are {names}; {', '.join(map(repr, inputs))} were given")
        arguments = [tensor.checked(np.asarray(inputs[tensor.name])) for tensor in self._inputs]
        results = [np.zeros(tensor.shape, tensor.dtype) for tensor in self._outputs]
        run, name, lock = self._library.run, self.name, self._lock
        held = _pointers(arguments), _pointers(results), arguments, self._library

        def call() -> None:
            with lock:
                failed = run(held[0], held[1])
            if failed:
                raise LucioleError(f"{name} failed")

        return call, results

    def reset(self) -> None:
        """Make the next run begin from the start, where a network has states."""
        with self._lock:
            self._library.reset()

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input."""
        return {tensor.name: tensor.shape for tensor in self._inputs}

    @property
    def places(self) -> list[int | None]:
        """For each output in fixed point: its integers are numbers times 2^places."""
        return [tensor.places for tensor in self._outputs]


def _refuse_cut(path: Path) -> None:
    """Refuse a file whose end is missing, which the loader would map and fall over: an ELF file of
    64 bits ends with the headers of its sections. Raises OSError.
    """
    with path.open("rb") as file:
        head = file.read(64)
        size = os.fstat(file.fileno()).st_size
    start, each, count = (
        int.from_bytes(head[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62))
    )
    if head[:6] == b"\x7fELF\x02\x01" and size < start + each * count:
        raise OSError(f"it has {size} bytes of {start + each * count}")


_loaded = itertools.count(1)
"""Numbers the libraries that this process has loaded."""


def _load(path: Path) -> ctypes.CDLL:
    """Load a copy that nobody else has, under a name that none had before: the loader takes a file
    for loaded by its name, and would not see that it was compiled again.
    """
    with tempfile.TemporaryDirectory(prefix="luciole-") as folder:
        copy = Path(folder) / f"{next(_loaded)}.so"
        shutil.copyfile(path, copy)
        return ctypes.CDLL(str(copy))


class _Library:
    """Loaded machine code, which is unloaded when nobody refers to this any more. Raises OSError
    and AttributeError for a file that has none of ours.
    """

    def __init__(self, path: Path) -> None:
        _refuse_cut(path)
        code = _load(path)
        weakref.finalize(self, dlclose, code._handle).atexit = False
        self._describe, self.run = code.luciole_describe, code.luciole_run
        self.reset = getattr(code, "luciole_reset", lambda: None)
        self._describe.restype = ctypes.c_char_p

    def description(self) -> Any:
        """Return the library's description of itself."""
        return json.loads(self._describe())


def _text(entry: object) -> str:
    """Return a text. Raises TypeError for anything else."""
    if not isinstance(entry, str):
        raise TypeError
    return entry


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
