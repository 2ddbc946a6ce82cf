"""Watch what a network's layers see on real data."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np

from luciole.interpreter import ActivationSaver, Interpreter
from luciole.interpreter.records import (
    BATCH,
    Progress,
    Records,
    batch_size,
    check_records,
    run_records,
)
from luciole.ir import Array, Model, Value
from luciole.ir.value import element_count
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.errors import QuantizeError

_MOST_BYTES = 128_000_000
"""Bytes of the tensors of a batch."""


LARGEST = np.float32(1e18)
"""Numbers beyond it have squares that float32 does not hold; no number of float16 is."""


def check_finite(records: Records) -> None:
    """Raise QuantizeError, saying where, for NaN or infinity in the data: no level fits them."""
    for name, array in records.items():
        for begin in range(0, len(array) if array.dtype.kind == "f" else 0, BATCH):
            _check_finite(name, np.asarray(array[begin : begin + BATCH]), begin)


def _check_finite(name: str, array: Array, begin: int) -> None:
    """Refuse NaN and infinity in some records, the first of which has the number ``begin``."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(array) <= LARGEST)  # NaN compares as false
    if bad.any():
        record, *element = (int(i) for i in np.argwhere(bad)[0])
        value, number = array[(record, *element)], begin + record
        too = f", more than {LARGEST:g} can be" if np.isfinite(value) else ""
        raise QuantizeError(
            f"input {name!r}: element {element} of record {number} is {value:g}{too}"
        )


def activations(
    model: Model, values: Iterable[Value], records: Records, progress: Progress | None = None
) -> dict[Value, Array]:
    """Record the contents of chosen tensors over all records, along their first axis.

    Raises QuantizeError where NaN or infinity appears: no level can be fitted to it.
    """
    saver = ActivationSaver(dict.fromkeys(values))
    interpreter = Interpreter(model)
    size = batch_for(interpreter, records)
    interpreter.attach_observer(saver)
    for _ in run_records(interpreter, records, progress, size):
        pass
    saved = {value: saver.saved(value) for value in dict.fromkeys(values)}
    for value, array in saved.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise QuantizeError(
                f"tensor {value.name!r} becomes NaN or infinite on the calibration data"
            )
    return saved


def batch_for(interpreter: Interpreter, records: Records) -> int:
    """Find how many records run at once: as many as ``batch_size`` allows, and no more than tensors
    of 128 MB in all hold.
    """
    graph = interpreter.graph
    shapes = [v.shape[1:] for op in graph.ops for v in op.results]
    each = sum(4 * element_count(tuple(n or 1 for n in shape)) for shape in shapes)
    most = max(1, min(BATCH, _MOST_BYTES // max(1, each)))
    count = check_records(graph, records)
    return batch_size(interpreter, records, _even(count, most))


def _even(count: int, most: int) -> int:
    """Choose how many records run at once: all batches are alike where some number allows it, as a
    network is planned for each.
    """
    most = min(most, count)
    alike = (size for size in range(most, most // 2, -1) if count % size == 0)
    return next(alike, most)


def watched(
    model: Model,
    values: Sequence[Value],
    records: Records,
    batch: int,
    progress: Progress | None = None,
    endless: Container[Value] = (),
) -> Iterator[tuple[range, list[Array]]]:
    """Run a model batch by batch and yield chosen tensors: the numbers of the records, and one
    array per tensor with the records along its first axis. Only operators that the tensors depend
    on run, and nothing is kept.

    Raises QuantizeError where NaN appears, or infinity in others than ``endless`` tensors.
    """
    return Front(model, records, batch).run(values, progress=progress, endless=endless)
