"""Run a network that was compiled into a shared library."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luciole.ir import Array, LucioleError


@dataclass(frozen=True)
class _Tensor:
    """What the library says of an input or an output."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    places: int | None

    def checked(self, array: Array) -> Array:
        """Return an array as the library reads it. Raises LucioleError for another one."""
        if array.dtype != self.dtype or array.shape != self.shape:
            wanted = f"{self.dtype} {list(self.shape)}"
            found = f"{array.dtype} {list(array.shape)}"
            raise LucioleError(f"input {self.name!r} is {wanted}, {found} was given")
        return np.ascontiguousarray(array)


class Compiled:
    """A network in a shared library that ``luciole compile --library`` made.

    The library is code that this process runs: load only what you or somebody you trust compiled.
    Threads may call it: tensors lie in memory of the library's own, so that one run waits for the
    other. Raises LucioleError for a file that is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._lock = threading.Lock()
        try:
            _refuse_cut(Path(path))
            self._library = ctypes.CDLL(_as_new(Path(path).resolve()))
            describe = self._library.luciole_describe
            self._run = self._library.luciole_run
        except (OSError, AttributeError) as error:
            raise LucioleError(f"{os.fspath(path)} is no compiled network: {error}") from None
        describe.restype = ctypes.c_char_p
        described = json.loads(describe())
        self.name: str = described["name"]
        self._inputs = _tensors(described["inputs"])
        self._outputs = _tensors(described["outputs"])

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
        """Bind arrays: return what runs the network on what they hold then, with little around it,
        and the arrays that it writes results to, one for each output. Arrays as for ``run``; those
        whose elements do not lie in order are copied, and later changes of them not seen.

        Raises LucioleError for other names, types or shapes; what is returned where a run fails.
        """
        if set(inputs) != {tensor.name for tensor in self._inputs}:
            wanted = ", ".join(repr(t.name) for t in self._inputs)
            raise LucioleError(f"inputs are {wanted}; {', '.join(map(repr, inputs))} were given")
        given = [tensor.checked(np.asarray(inputs[tensor.name])) for tensor in self._inputs]
        gotten = [np.zeros(tensor.shape, tensor.dtype) for tensor in self._outputs]
        run, name, held = self._run, self.name, (given, _pointers(given), _pointers(gotten))
        lock = self._lock

        def call() -> None:
            with lock:
                failed = run(held[1], held[2])
            if failed:
                raise LucioleError(f"{name} failed")

        return call, gotten

    def reset(self) -> None:
        """Let the next run begin from the start, where a network has states."""
        if hasattr(self._library, "luciole_reset"):
            with self._lock:
                self._library.luciole_reset()

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


def _as_new(path: Path) -> str:
    """Spell a path as nobody has before: the loader takes a file for loaded by its name, and would
    not see that it was compiled again.
    """
    return os.path.join(path.parent, "./" * (next(_loaded) % 1000), path.name)


def _tensors(described: Sequence[Mapping[str, object]]) -> list[_Tensor]:
    found = []
    for one in described:
        shape, places = one["shape"], one["places"]
        assert isinstance(shape, list)
        assert isinstance(places, int | None)
        found.append(_Tensor(str(one["name"]), str(one["dtype"]), tuple(shape), places))
    return found


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
