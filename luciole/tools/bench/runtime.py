"""Describe a runtime that is measured: it loads a model file, takes arrays, runs and returns
arrays.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from luciole.ir import Array, LucioleError
from luciole.ir.dtypes import tensor_type
from luciole.ir.quantization import Affine
from luciole.ir.value import shape_text
from luciole.tools.common.timing import Call, Timed

Shape = tuple[int, ...]


class BenchError(LucioleError):
    """Something cannot be measured as asked."""


class CrashError(BenchError):
    """A runtime ended the process that it ran in."""

    def __init__(self, runtime: Runtime, message: str) -> None:
        super().__init__(message)
        self.runtime = runtime


@dataclass(frozen=True)
class Port:
    """An input or output: what it takes, and how its integers stand for numbers if they do."""

    name: str
    dtype: np.dtype[Any]
    shape: Shape
    affine: Affine | None = None

    @classmethod
    def of(cls, name: str, dtype: DTypeLike, shape: Sequence[int], *affine: float) -> Port:
        """Make a port from a runtime's description; ``affine`` is scale and zero point, scale 0 for
        neither.
        """
        scale, zero = affine or (0.0, 0)
        kind, quantization = np.dtype(dtype), None
        if scale and kind.kind in "iu":
            quantization = Affine.single(float(scale), int(zero), tensor_type(kind))
        return cls(name, kind, tuple(map(int, shape)), quantization)

    def numbers(self, array: Array) -> Array:
        """Decode an array at this port: [...] float32 where it is quantized."""
        return array if self.affine is None else self.affine.decode(array).astype(np.float32)

    def stored(self, numbers: Array) -> Array:
        """Encode numbers as this port holds them: rounded and cut off where it is quantized."""
        if self.affine is None:
            return numbers.astype(self.dtype, copy=False)
        return self.affine.encode(numbers.astype(np.float64))

    def holds_the_same(self, other: Port) -> bool:
        """Return whether equal arrays at both stand for equal numbers."""
        if self.affine is None or other.affine is None:
            return self.dtype == other.dtype and self.affine is other.affine
        return self.dtype == other.dtype and self.affine.same_numbers(other.affine)


@dataclass(frozen=True)
class Phase:
    """Something done once, between two moments in nanoseconds."""

    name: str
    begin: int
    end: int

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.end - self.begin) / 1e6


class Phases(dict[str, Phase]):
    """Phases done once before the measurement, by name."""

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note when the body begins and ends."""
        begin = time.perf_counter_ns()
        yield
        self[name] = Phase(name, begin, time.perf_counter_ns())


class Runtime(ABC):
    """A model file loaded by something that runs it.

    ``invoke`` runs it on what ``feed`` put in place. ``fetch`` copies the results out.
    """

    kind = ""
    inputs: list[Port]
    outputs: list[Port]
    invoke: Call

    def __init__(self, path: Path) -> None:
        self.path = path
        self.phases = Phases()

    @property
    def name(self) -> str:
        """Name of the runtime in tables."""
        return f"{self.kind} {self.path.name}".strip()

    @abstractmethod
    def feed(self, arrays: Sequence[Array]) -> None:
        """Copy arrays, one for each input in order, to where ``invoke`` takes them."""

    @abstractmethod
    def fetch(self) -> list[Array]:
        """Return copies of the results of the last ``invoke``, in order."""

    def with_copies(self, arrays: Sequence[Array]) -> list[Array]:
        """Feed, invoke and fetch: what a caller pays whose arrays are elsewhere."""
        self.feed(arrays)
        self.invoke()
        return self.fetch()

    def run_records(self, records: Sequence[Array]) -> list[Array]:
        """Run records one by one: an array [records, ...] per input in order gives one
        [records, ...] per output. A runtime whose files have variables resets them for each.
        """
        results = []
        for number in range(len(records[0])):
            pairs = zip(records, self.inputs, strict=True)
            results.append(self.with_copies([a[number].reshape(p.shape) for a, p in pairs]))
        return [np.stack(arrays) for arrays in zip(*results, strict=True)]

    def timed(self, arrays: Sequence[Array]) -> tuple[Call | Timed, Call | Timed]:
        """Make two calls to time: ``invoke``, and a run on what ``arrays`` holds then with copying
        in and out.
        """
        return self.invoke, self.copying(arrays)

    def copying(self, arrays: Sequence[Array]) -> Call:
        """Make a call that copies in the present contents of ``arrays``, runs, and copies out."""
        return partial(self.with_copies, arrays)


def translated(arrays: Sequence[Array], source: Runtime, target: Runtime) -> list[Array]:
    """Turn arrays for ``source`` into arrays for ``target``.

    Quantized inputs are converted, shapes may differ by axes of extent 1, by being flat, or by NCHW
    instead of NHWC. Raises BenchError for anything else.
    """
    if len(source.inputs) != len(target.inputs):
        raise BenchError(
            f"{target.name} has {len(target.inputs)} inputs, "
            f"{source.name} has {len(source.inputs)}: they are matched by their order"
        )
    ports = zip(arrays, source.inputs, target.inputs, strict=True)
    return [_translated(array, ours, theirs, target) for array, ours, theirs in ports]


def _translated(array: Array, ours: Port, theirs: Port, target: Runtime) -> Array:
    from luciole.tools.data.fitting import fit_shape  # not in the processes of other runtimes

    changed = array if ours.holds_the_same(theirs) else theirs.stored(ours.numbers(array))
    if fit_shape(array.shape, theirs.shape) is not None:
        return np.asarray(changed.reshape(theirs.shape), order="C")
    if array.ndim == 4 and _channels_first(array.shape) == theirs.shape:
        return np.asarray(changed.transpose(0, 3, 1, 2), order="C")
    raise BenchError(
        f"{target.name} takes {theirs.name!r} as {shape_text(theirs.shape)}, "
        f"the model {ours.name!r} as {shape_text(array.shape)}"
    )


def _channels_first(shape: Shape) -> Shape:
    n, h, w, c = shape
    return n, c, h, w


def filled(shape: Sequence[object], defaults: Shape) -> Shape:
    """Fill a shape's open extents (negative, names or None) with those of ``defaults``, else 1."""
    filler = defaults if len(defaults) == len(shape) else (1,) * len(shape)
    return tuple(
        n if isinstance(n, int) and n >= 0 else other
        for n, other in zip(shape, filler, strict=True)
    )
