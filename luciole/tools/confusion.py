"""Count how ``luciole eval`` sees single classes: what each is taken for, recall and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from luciole.ir import Array

MOST_CLASSES = 1000
"""More give no matrix: it grows with their square."""


@dataclass(frozen=True)
class ClassFigures:
    """One class. ``recall`` is the share of its records that are recognized, ``precision`` the
    share of the answers with this class that are right; None where there are no such records or
    answers.
    """

    label: int
    records: int
    recall: float | None
    precision: float | None


def confusion_of(labels: Array, answers: Array) -> NDArray[np.int64] | None:
    """Count how many records of each label (row) got each answer (column): [classes, classes].

    There are as many classes as the largest label or answer says, counted from 0. None for labels
    that are no class numbers, and for more than ``MOST_CLASSES``.
    """
    if not len(labels) or not np.all(np.equal(labels, np.floor(labels))) or labels.min() < 0:
        return None
    size = int(max(labels.max(), answers.max())) + 1
    if size > MOST_CLASSES:
        return None
    matrix = np.zeros((size, size), np.int64)
    np.add.at(matrix, (labels.astype(np.intp), answers.astype(np.intp)), 1)
    return matrix


def class_figures(confusion: NDArray[np.int64]) -> list[ClassFigures]:
    """Compute the figures of every class."""
    columns = zip(np.diag(confusion), confusion.sum(1), confusion.sum(0), strict=True)
    return [
        ClassFigures(label, int(records), _share(right, records), _share(right, answers))
        for label, (right, records, answers) in enumerate(columns)
    ]


def class_rows(confusion: NDArray[np.int64]) -> list[tuple[str, ...]]:
    """Write a table: a row of headings, then one row for each class."""
    head = ("class", "records", "right (recall)", "precision", "most often taken for")
    return [
        head,
        *(
            (str(c.label), str(c.records), _percent(c.recall), _percent(c.precision), taken)
            for c, taken in zip(class_figures(confusion), _taken_for(confusion), strict=True)
        ),
    ]


def _taken_for(confusion: NDArray[np.int64]) -> list[str]:
    """Find the commonest wrong answer for each class and how often it was given; "-" without
    any.
    """
    wrong = confusion - np.diag(np.diag(confusion))
    commonest = wrong.argmax(1)
    counts = wrong[np.arange(len(wrong)), commonest]
    return [f"{c} ({n}x)" if n else "-" for c, n in zip(commonest, counts, strict=True)]


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"
