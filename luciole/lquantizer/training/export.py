"""Put what was learned into a copy of the student."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from luciole.ir import Array, Model, Op, Value
from luciole.ir.passes.cleaning.remove_dead import remove_dead_buffers
from luciole.lquantizer.training.parameters import LQOp, TrainableParameters, write


def exported(
    student: Model,
    learned: Sequence[tuple[Sequence[LQOp], TrainableParameters]],
    floats: Mapping[Value, Array],
) -> Model:
    """Clone the student with the learned parameters of layers (together, where they share them) and
    trained constants of float layers.

    Codes are encoded again from the shadow weights; everything else of the model stays.
    """
    copy = student.clone()
    ops: dict[Op, Op] = dict(zip(student.graph.ops, copy.graph.ops, strict=True))
    values = dict(zip(student.graph.values, copy.graph.values, strict=True))
    for group, parameters in learned:
        write([twin for op in group if isinstance(twin := ops[op], LQOp)], parameters)
    for value, array in floats.items():
        values[value].set_data(array)
    remove_dead_buffers(copy)
    return copy
