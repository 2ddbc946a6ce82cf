"""Find the answers of an output: for each record, and for each of its steps, a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.errors import InputError
from luciole.ir import Array, Op, Value
from luciole.ir.names import called
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.softmax import Distribution

_UNIT = 1e-3
"""How far probabilities may be from a sum of 1."""


def distribution_of(output: Value) -> Distribution | None:
    """Find the softmax that makes an output, rounded or not, its rows laid out anew or not; None
    where something else does.
    """
    op = _maker(output)
    while op is not None and _keeps_rows(op):
        op = _maker(op.operands[0])
    return op if isinstance(op, Distribution) else None


def _maker(value: Value | None) -> Op | None:
    return None if value is None or value.producer is None else value.producer.op


def _keeps_rows(op: Op) -> bool:
    """Return whether an operator's results are results of its first operand, row by row."""
    if isinstance(op, Quantize | Dequantize):
        return True
    operand = op.operands[0] if op.reshapes else None
    return operand is not None and operand.shape[-1:] == op.results[0].shape[-1:]


def is_probability(numbers: Array) -> bool:
    """Return whether real numbers are probabilities over their last axis."""
    if numbers.dtype.kind != "f" or numbers.ndim < 2 or numbers.shape[-1] < 2:
        return False
    return bool(numbers.min() >= -_UNIT and np.abs(numbers.sum(-1) - 1).max() < _UNIT)


def scores_classes(output: Value, numbers: Array, labels: Array | None = None) -> bool:
    """Return whether the last axis of an output's numbers [records, ..., elements] scores classes.

    One row for each record does, be it of probabilities or of logits. Rows for each step or pixel
    do where a softmax makes them, where they are probabilities, and where there is a label for each
    of them; else they are signals, boxes or images.
    """
    if numbers.ndim < 2 or numbers.shape[-1] < 2:
        return False
    places = _without_ones(numbers.shape[:-1])
    is_labelled = labels is not None and _without_ones(labels.shape) == places
    if len(places) == 1 or is_labelled:
        return True
    return distribution_of(output) is not None or is_probability(numbers)


def answers_of(numbers: Array) -> NDArray[np.intp]:
    """Find the class of the largest number: [records, ..., classes] -> [records, ...], axes between
    the two that have one place left out.
    """
    return np.asarray(numbers.argmax(-1)).reshape(_without_ones(numbers.shape[:-1]))


def agreement(numbers: Array, others: Array) -> float:
    """Return the share of records, or of their steps, for which two outputs answer alike."""
    return float(np.mean(answers_of(numbers) == answers_of(others)))


def labels_for(labels: Array, shape: tuple[int, ...]) -> Array:
    """Bring labels into the shape of answers, one for each. Raises InputError where they differ by
    more than axes with one place, and where they are no numbers of classes.
    """
    if labels.dtype.kind not in "biuf" or (labels % 1 != 0).any():
        shown = f"'{labels.flat[0]}'" if labels.dtype.kind in "US" else labels.dtype
        raise InputError(f"labels are numbers of classes, 0, 1, 2, ..., found {shown}")
    if _without_ones(labels.shape) != shape:
        shapes = f"{list(labels.shape)}, the answers {list(shape)}"
        hint = " (one-hot labels: give labels.argmax(-1))" if labels.shape[:-1] == shape else ""
        raise InputError(
            f"the labels have shape {shapes}: one label for each answer is needed{hint}"
        )
    return labels.reshape(shape)


def no_class(labels: Array, output: Value, classes: int, counts: Array | None = None) -> str | None:
    """Name the first label, of all or of those that count, that is no class of an output; None
    where all are.
    """
    bad = ~((labels >= 0) & (labels < classes))  # NaN is none, too
    if counts is not None:
        bad &= counts
    if not bad.any():
        return None
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    return (
        f"record {place[0]} has label {labels[place]}, output {called(output)!r} has {classes} "
        f"classes: 0 to {classes - 1}"
    )


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out axes with one place but the first, which counts records."""
    return (*shape[:1], *(extent for extent in shape[1:] if extent != 1))


@dataclass(frozen=True)
class Reference:
    """A float network's numbers of one output [records, ..., elements], which others are held
    against, and whether they score classes.
    """

    numbers: NDArray[np.float64]
    has_classes: bool

    @classmethod
    def of(cls, output: Value, numbers: Array) -> Reference:
        """Keep an output's numbers."""
        return cls(numbers.astype(np.float64), scores_classes(output, numbers))

    def agreement(self, numbers: Array) -> float | None:
        """Return the share of answers that another network gives as well, None without classes."""
        return agreement(self.numbers, numbers) if self.has_classes else None
