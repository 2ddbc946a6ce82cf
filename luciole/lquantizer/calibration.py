"""What a network's layers see on real data."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from luciole.interpreter import ActivationSaver, Interpreter
from luciole.interpreter.records import Progress, Records, batch_size, run_records
from luciole.ir import Array, Model, Value
from luciole.lquantizer.errors import QuantizeError


def activations(
    model: Model, values: Iterable[Value], records: Records, progress: Progress | None = None
) -> dict[Value, Array]:
    """The contents of chosen tensors over all records, along their first axis.

    Raises QuantizeError where NaN or infinity appears: no level can be fitted to it.
    """
    saver = ActivationSaver(dict.fromkeys(values))
    interpreter = Interpreter(model)
    size = batch_size(interpreter, records)
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
