"""What every kind of data case shares: a graph to load for, and what must hold of the loading."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from luciole.importers import hdf5
from luciole.ir import Graph, LucioleError, TensorType
from luciole.schema.tables import QuantizationParameters
from luciole.tools.data import Data, load_data
from luciole.tools.data.bounds import Bounds
from tests.fuzz.mutations import Rng
from tests.fuzz.programs import BrokenPromiseError

DATA_LIMIT = 16 << 20
"""Bytes of records and labels that are asked for at most."""
MOST_GROWTH = 256 << 20
"""Bytes by which a case may let a process grow beyond what is asked for."""
_LONGEST_SENTENCE = 4000
COMPUTING = 3.0
"""Seconds for a request to the process that reads HDF5; a case has five."""


@dataclass(frozen=True)
class DataCase:
    """The bytes of a file, and what was done to it."""

    number: int
    content: bytes
    what: str


def choose(rng: Rng, things: Any) -> Any:
    """One of them, whatever they are."""
    return things[int(rng.integers(len(things)))]


def graph_for(rng: Rng) -> Graph:
    """A graph that takes images of 4 x 4, as they are stored or quantized, or of an open size."""
    graph = Graph("main")
    shape = choose(rng, [(1, 4, 4), (1, 4, 4), (None, 16), (1, None, 4), (None, None, None)])
    dtype = choose(rng, [TensorType.FLOAT32] * 8 + [TensorType.INT8, TensorType.INT32])
    value = graph.add_input("a", shape, dtype)
    if dtype == TensorType.INT8:
        value.quantization = QuantizationParameters(
            scale=np.array([0.5], np.float32), zero_point=np.array([3])
        )
    if rng.random() < 0.05:
        graph.add_input("b", (1, 2))
    return graph


def options_for(rng: Rng, labels: Sequence[str], arrays: Sequence[str]) -> dict[str, Any]:
    """Arguments of load_data as people give them."""
    limit = choose(rng, [None, None, 1, 2, 10, 10**9])
    options: dict[str, Any] = {"limit": limit, "bounds": Bounds(DATA_LIMIT, rng.random() < 0.1)}
    if rng.random() < 0.1:
        options["preprocess"] = "x/255"
    if arrays and rng.random() < 0.1:
        options["array"] = choose(rng, arrays)
    if labels and rng.random() < 0.2:
        options["labels"] = choose(rng, labels)
    return options


def load(path: Path, rng: Rng, labels: Sequence[str] = (), arrays: Sequence[str] = ()) -> str:
    """Load a case as a program would, and check what was loaded. Returns how it ended."""
    hdf5.SECONDS = COMPUTING
    graph, options = graph_for(rng), options_for(rng, labels, arrays)
    with promised(DATA_LIMIT):
        try:
            data = load_data(str(path), graph, **options)
        except LucioleError as error:
            check_refusal(error)
            return type(error).__name__
        _check(data, graph, options["limit"])
        data.summary()
    return "loaded"


def _check(data: Data, graph: Graph, limit: int | None) -> None:
    if limit is not None and data.count > limit:
        raise BrokenPromiseError(f"{data.count} records where {limit} were asked for")
    for value in graph.inputs:
        array = data.records[value.name]
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BrokenPromiseError(f"a record of {value.name} is not finite")
        if len(array) != data.count:
            raise BrokenPromiseError(f"{len(array)} records of {value.name}, not {data.count}")
    if data.labels is not None and len(data.labels) != data.count:
        raise BrokenPromiseError(f"{len(data.labels)} labels of {data.count} records")


def check_refusal(error: LucioleError) -> None:
    """Raise unless a refusal is one sentence of one line."""
    text = str(error)
    if not text.strip() or "\n" in text.strip() or len(text) > _LONGEST_SENTENCE:
        raise BrokenPromiseError(f"a refusal is no sentence: {text[:500]!r}") from error
    if "MemoryError" in text:
        raise BrokenPromiseError(f"memory ran out: {text}") from error


@contextmanager
def promised(asked: int) -> Iterator[None]:
    """Raise where a process grows by more than what is asked for and some room, or where it has a
    child that is larger than this and than all before.
    """
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, largest = _memory("VmRSS"), _largest_child()
    yield
    grown, child = _memory("VmHWM") - before, _largest_child()
    for who, size in (("the process", grown), ("a child", child if child > largest else 0)):
        if size > asked + MOST_GROWTH:
            raise BrokenPromiseError(f"{who} grew by {size >> 20} MB")


def _largest_child() -> int:
    """Bytes of the largest child that has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


def _memory(name: str) -> int:
    """Bytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) << 10


def made_apart(make: Callable[[], tuple[bytes, str]]) -> tuple[bytes, str]:
    """What a function makes by a library that may not survive it, in a process of its own; nothing
    where it did not.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            content, what = make()
            with os.fdopen(write, "wb") as out:
                out.write(what.encode() + b"\n" + content)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        line, _, content = file.read().partition(b"\n")
    os.waitpid(child, 0)
    return content, line.decode() or "not made"


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    place = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="luciole-fuzz-", dir=place if place.is_dir() else None))


@contextmanager
def emptied() -> Iterator[Path]:
    """The process's folder with nothing in it; empty again afterwards."""
    place = folder() / "case"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
