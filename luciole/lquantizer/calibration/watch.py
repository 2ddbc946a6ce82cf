"""What a network's layers see on real data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from luciole.ir.analysis.constancy import is_fixed
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.value import element_count, has_batch_axis
from luciole.lquantizer.errors import QuantizeError

_MOST_BYTES = 128_000_000
"""Bytes of the tensors of a batch."""


def check_finite(records: Records) -> None:
    """Raise QuantizeError, saying where, for NaN or infinity in the data: no level fits them."""
    for name, array in records.items():
        for begin in range(0, len(array) if array.dtype.kind == "f" else 0, BATCH):
            _check_finite(name, array[begin : begin + BATCH], begin)


def _check_finite(name: str, array: Array, begin: int) -> None:
    """Refuse NaN and infinity in some records, the first of which has the number ``begin``."""
    bad = ~np.isfinite(array)
    if bad.any():
        record, *element = (int(i) for i in np.argwhere(bad)[0])
        value, number = array[(record, *element)], begin + record
        raise QuantizeError(f"input {name!r}: element {element} of record {number} is {value}")


def activations(
    model: Model, values: Iterable[Value], records: Records, progress: Progress | None = None
) -> dict[Value, Array]:
    """Record the contents of chosen tensors over all records, along their first axis.

    Raises QuantizeError where NaN or infinity appears: no level can be fitted to it.
    """
    saver = ActivationSaver(dict.fromkeys(values))
    interpreter = Interpreter(model)
    size = batch_for(model, records)
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


def batch_for(model: Model, records: Records) -> int:
    """Find how many records run at once: as many as ``batch_size`` allows, and no more than tensors
    of 128 MB in all hold.
    """
    shapes = [v.shape[1:] for op in model.graph.ops for v in op.results]
    each = sum(4 * element_count(tuple(n or 1 for n in shape)) for shape in shapes)
    most = max(1, min(BATCH, _MOST_BYTES // max(1, each)))
    return batch_size(Interpreter(model), records, most)


def watched(
    model: Model,
    values: Sequence[Value],
    records: Records,
    batch: int,
    progress: Progress | None = None,
) -> Iterator[tuple[range, list[Array]]]:
    """Run a model batch by batch and give what chosen tensors hold: which records, and one array
    per tensor with the records along its first axis. Only what the tensors depend on is run, and
    nothing is kept.

    Raises QuantizeError where NaN or infinity appears.
    """
    part = _up_to(model, values)
    names = [value.name for value in part.graph.outputs]
    total, begin = check_records(model.graph, records), 0
    for outputs in run_records(Interpreter(part), records, progress, batch):
        count = min(batch, total - begin)
        arrays = [_by_record(v, outputs[n], count) for v, n in zip(values, names, strict=True)]
        for value, array in zip(values, arrays, strict=True):
            if not np.isfinite(array).all():
                raise QuantizeError(
                    f"tensor {value.name!r} becomes NaN or infinite on the calibration data"
                )
        yield range(begin, begin + count), arrays
        begin += count


def _by_record(value: Value, array: Array, count: int) -> Array:
    """Shape a tensor of a run of ``count`` records with the records along its first axis: behind a
    RESHAPE that axis may hold several rows of each, which get an axis of their own.
    """
    if not has_batch_axis(value):
        array = np.asarray(array[0])  # undo the axis that was put in front
    if array.size == 0 or array.ndim == 0:
        return np.resize(array, (count, array.size))
    if is_fixed(value):
        return np.broadcast_to(array, (count, *array.shape))
    return array if len(array) == count else array.reshape(count, -1, *array.shape[1:])


def _up_to(model: Model, values: Sequence[Value]) -> Model:
    """Copy the main graph cut off behind some tensors, which become outputs with new names."""
    copy, copies = model.graph.clone()
    part = Model()
    part.add_graph(copy)
    copy.outputs = [copies[value] for value in values]
    for number, value in enumerate(dict.fromkeys(copy.outputs)):
        if not value.is_input:
            value.name = f"watched {number}"
    remove_dead(copy)
    return part
