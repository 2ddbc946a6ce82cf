"""Run a model over many records: in batches where that gives the same results, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from luciole.interpreter.affine import as_input
from luciole.interpreter.errors import NO_ARRAY, InputError
from luciole.interpreter.interpreter import Interpreter
from luciole.interpreter.samples import Samples, Selection, file_of
from luciole.ir import Array, Graph, LucioleError, Model, Value
from luciole.ir.analysis.figures import macs
from luciole.ir.dtypes import NUMPY
from luciole.ir.names import by_own_names
from luciole.ir.strings import OBJECTS
from luciole.ir.value import compatible, has_batch_axis, shape_text
from luciole.kernels.jit.together import cores

Records = Mapping[str, Samples]
"""One array per input name, or samples that are read in parts; the first axis counts records. A
record has the input's shape without its first axis where that is 1 or unknown, else the input's
whole shape.
"""

Data = Mapping[str, ArrayLike] | ArrayLike
"""Records as callers have them: arrays by input name, one array alone for a model with one input.
"""

Progress = Callable[[int], None]
"""Called with the number of records done since the last call."""

Track = Callable[[str, int], Progress]
"""``track(what, total)`` begins long work and returns the function to call as it advances."""


def untracked(what: str, total: int) -> Progress:
    """Show no progress."""
    return lambda done: None


BATCH = 64
_TOLERANCE = 1e-4


LEAST_PRODUCTS = 4_000_000_000
"""Products of all records, some 0.1 s of float work, from which on threads pay for what it costs to
share steps among them.
"""

MOST_SHARING = 8
"""Threads at the most: steps of microseconds are not shared by more."""


class Runs(Protocol):
    """What runs a graph: an interpreter, or several in a row."""

    graph: Graph

    def run(self, inputs: Mapping[str, Any], /) -> dict[str, Array]:
        """Compute the outputs by name."""

    def computed(self, inputs: Mapping[str, Any], values: Sequence[Value], /) -> list[Array]:
        """Compute tensors."""

    def reset_before_run(self) -> None:
        """Give the next run fresh variables."""


def records_of(graph: Graph, data: Data) -> dict[str, Samples]:
    """Take a caller's records by the inputs' own names; real numbers become what inputs store.

    Raises InputError for an array alone where a graph has more inputs or none, and for numbers that
    a float input does not take.
    """
    if isinstance(data, Mapping):
        inputs = {v.name: v for v in graph.inputs}
        named = {str(name): _records(str(name), array) for name, array in data.items()}
        arrays = by_own_names(graph, named)
        return {n: _samples(inputs[n], a) if n in inputs else a for n, a in arrays.items()}
    if len(graph.inputs) != 1:
        names = sorted(v.name for v in graph.inputs)
        raise InputError(f"the model has {len(names)} inputs {names}: give a dictionary of arrays")
    return records_of(graph, {graph.inputs[0].name: data})


def _samples(value: Value, samples: Samples) -> Samples:
    """Read records of an input when they are asked for: those that are converted, and those of a
    mapped file.
    """
    convert = partial(as_input, value)
    fed = convert(np.asarray(samples[:0])).dtype
    _check_number_type(value, fed)
    is_stored = fed == samples.dtype
    if is_stored and (not isinstance(samples, np.ndarray) or file_of(samples) is None):
        return samples
    return Selection.all(np.asarray(samples), convert)


def _check_number_type(value: Value, fed: np.dtype[Any]) -> None:
    """Refuse numbers of another type than a float input's. Raises InputError that names a remedy:
    converting them unasked might lose digits.
    """
    own = np.dtype(NUMPY.get(value.dtype, fed))
    if own.kind == "f" and fed.kind in "biuf" and fed != own:
        raise InputError(
            f"input {value.name!r} takes {own}, the data has {fed}: "
            f'.astype("{own}") converts an array'
        )


def _records(name: str, data: ArrayLike | Samples) -> Samples:
    """Take an input's records as an array, or as what is read like one. Raises InputError where
    they make none.
    """
    if isinstance(data, Selection):
        return data
    try:
        array = np.asarray(data)
    except NO_ARRAY as error:
        raise InputError(f"the data for {name!r} is no array: {error}") from None
    if array.ndim == 0:
        kind = "one number" if array.dtype.kind in "biufc" else type(data).__name__
        needed = "an array is needed, whose first axis counts records"
        raise InputError(f"the data for {name!r} is {kind}: {needed}")
    return array


def check_records(graph: Graph, records: Records) -> int:
    """Count the records. Raises InputError when they do not fit the inputs."""
    names = {v.name: v for v in graph.inputs}
    if not names:
        raise InputError("the network has no input: nothing can be learned from records, or judged")
    if records.keys() != names.keys():
        raise InputError(f"the inputs are {sorted(names)}, the data has {sorted(records)}")
    scalars = [name for name, array in records.items() if not array.shape]
    if scalars:
        raise InputError(
            f"the data for {scalars[0]!r} is one number: the first axis counts records"
        )
    counts = {len(array) for array in records.values()}
    if len(counts) != 1 or counts == {0}:
        raise InputError(
            f"every input needs the same number of records and at least one, found {sorted(counts)}"
        )
    for name, value in names.items():
        own = value.shape[1:] if has_batch_axis(value) else value.shape
        other = records[name].shape[1:]
        if not compatible(own, other):
            raise InputError(
                f"a record of {name!r} is {shape_text(own)}, the data has {shape_text(other)}"
            )
    return counts.pop()


def threads_for(model: Model, records: Records) -> int:
    """Return how many threads should run a model over records: as many as there are cores where
    that is long work. Results are the same.
    """
    count = len(next(iter(records.values()), ()))
    products = count * sum(macs(op) or 0 for op in model.graph.ops)
    return min(cores(), MOST_SHARING) if products >= LEAST_PRODUCTS else 1


def run_records(
    interpreter: Runs,
    records: Records,
    progress: Progress | None = None,
    batch: int | None = None,
    tensors: Mapping[str, Value] | None = None,
) -> Iterator[dict[str, Array]]:
    """Compute the outputs, or other ``tensors``, by name, batch after batch, the first axis
    counting records again.

    Variables (an LSTM's state) start afresh for every batch. Unless ``batch`` is given,
    ``batch_size`` finds it.
    """
    count = check_records(interpreter.graph, records)
    size = batch_size(interpreter, records, tensors=tensors) if batch is None else batch
    for start in range(0, count, size):
        part = some(records, start, start + size)
        yield _run(interpreter, part, tensors)
        if progress is not None:
            progress(min(size, count - start))


def some(records: Records, begin: int, end: int) -> dict[str, Array]:
    """Read the records of a range of numbers."""
    return {name: np.asarray(array[begin:end]) for name, array in records.items()}


def batch_size(
    interpreter: Runs,
    records: Records,
    most: int = BATCH,
    tensors: Mapping[str, Value] | None = None,
) -> int:
    """Return how many records to run at once: more than one only when the graph accepts that and
    gives the first records the results that they have alone.
    """
    size = min(most, check_records(interpreter.graph, records))
    return size if size > 1 and batches_agree(interpreter, records, tensors) else 1


def check_batch(graph: Graph, batch: int) -> None:
    """Refuse a batch that a graph has no axis for. Raises InputError."""
    if batch < 1:
        raise InputError(f"batch is {batch}: it is 1 or more")
    without = [v for v in (*graph.inputs, *graph.outputs) if not has_batch_axis(v)]
    if batch > 1 and without:
        raise InputError(
            f"batch is {batch}, but {without[0].name!r} {shape_text(without[0].shape)} has no "
            "first axis of 1 that would count records: they run one by one"
        )


def outputs_of(
    interpreter: Runs,
    records: Records,
    progress: Progress | None = None,
    batch: int | None = None,
    tensors: Mapping[str, Value] | None = None,
) -> dict[str, Array]:
    """Compute all outputs, or other ``tensors``, by name, the first axis counting records, as
    ``run_records`` does. Raises InputError for results whose extents differ between records.
    """
    parts = list(run_records(interpreter, records, progress, batch, tensors))
    return {name: _joined(name, [part[name] for part in parts]) for name in parts[0]}


def _joined(name: str, parts: Sequence[Array]) -> Array:
    first = parts[0].shape[1:]
    for part in parts:
        if part.shape[1:] != first:
            shapes = f"{shape_text(part.shape[1:])} after {shape_text(first)}"
            raise InputError(
                f"{name!r} is {shapes}: records whose results differ in extents "
                "do not go into one array, run them one by one"
            )
    return np.concatenate(parts)


def digest(records: Records, place: int) -> bytes:
    """Make 8 bytes of a record, all inputs together, that tell whether another is the same."""
    hasher = blake2b(digest_size=8)
    for name in sorted(records):
        hasher.update(np.asarray(records[name][place]).tobytes())
    return hasher.digest()


def digests(records: Records | None) -> frozenset[bytes]:
    """Make the ``digest`` of each record, none where there are no records."""
    count = len(next(iter(records.values()))) if records else 0
    return frozenset(digest(records or {}, place) for place in range(count))


def first_output(model: Model, records: Records, progress: Progress | None = None) -> Array:
    """Compute the first output of each record: [records, ...], see ``interpreter.answers``."""
    return outputs_of(Interpreter(model), records, progress)[model.graph.outputs[0].name]


def batches_agree(
    interpreter: Runs, records: Records, tensors: Mapping[str, Value] | None = None
) -> bool:
    """Return whether two records give the same results together as each alone."""
    graph = interpreter.graph
    results = graph.outputs if tensors is None else tensors.values()
    if not all(has_batch_axis(v) for v in (*graph.inputs, *results)):
        return False
    both = [some(records, i, i + 1) for i in range(2)]
    alone = [_run(interpreter, one, tensors) for one in both]
    try:
        together = _run(interpreter, some(records, 0, 2), tensors)
    except LucioleError:
        return False
    separate = {n: np.concatenate([a[n] for a in alone]) for n in alone[0]}
    return all(_close(together[n], separate[n]) for n in separate)


def _close(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype == OBJECTS:
        return np.array_equal(a, b)
    scale = 0.0
    if b.dtype.kind == "f":
        scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
    return bool(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True))


def _run(
    interpreter: Runs, part: Records, tensors: Mapping[str, Value] | None = None
) -> dict[str, Array]:
    """Run one batch, or one record of a graph without a batch axis."""
    inputs = {v.name: v for v in interpreter.graph.inputs}
    batched = {n: a if has_batch_axis(inputs[n]) else a[0] for n, a in part.items()}
    interpreter.reset_before_run()
    if tensors is None:
        outputs = interpreter.run(batched)
        results: Mapping[str, Value] = {v.name: v for v in interpreter.graph.outputs}
    else:
        arrays = interpreter.computed(batched, list(tensors.values()))
        outputs, results = dict(zip(tensors, arrays, strict=True)), tensors
    # what a file says of a result may not be so: one number has no first axis
    return {n: a if has_batch_axis(results[n]) and a.ndim else a[None] for n, a in outputs.items()}
