"""Measure how far one tensor is from another over many records: sums that grow, and the usual
measures.

MAE, MAPE and the top-k match are those of ONE's ``circle-eval-diff``; MPEIR, MSE, TAE and SRMSE
those of its ``visq``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-6
"""Added to the interval in MPEIR, so that a constant reference gives a number."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """The distance of a tensor from its reference; None where a measure has no value.

    ``relative`` is the error's norm over the reference's, ``snr_db`` the same in decibel, both with
    ``cosine`` over all records together. ``mae`` and ``mse`` are means over elements and records,
    ``mape`` that of the error over the reference in percent (undefined where the reference is 0).
    The others are means over records: ``mpeir`` the largest error over the reference's range,
    ``tae`` the sum of absolute errors. ``srmse`` is the root of ``mse`` over the scale with which
    the tensor is quantized; ``largest`` the largest error of all.
    """

    relative: float | None
    snr_db: float | None
    cosine: float | None
    mpeir: float | None
    mse: float | None
    mae: float | None
    mape: float | None
    tae: float | None
    srmse: float | None
    largest: float | None

    def as_dict(self) -> dict[str, float | None]:
        """Return the measures by name."""
        return {f.name: self.__dict__[f.name] for f in fields(self)}


class Range(NamedTuple):
    """The smallest and the largest value that single records have of a measure."""

    low: float
    high: float


class ErrorSums:
    """Sums for the measures of one tensor, batch by batch."""

    def __init__(self, scale: float | None = None) -> None:
        self.scale = scale
        self.records = self.elements = 0
        self._absolute = self._square = self._percent = 0.0
        self._reference = self._other = self._product = 0.0
        self._peaks = 0.0
        self._largest = 0.0
        self._by_record: dict[str, Range] = {}

    def add(self, reference: Floats, other: Floats) -> None:
        """Count a batch of each: [records, elements]. They are compared in float64."""
        if not reference.size:
            return
        error = np.subtract(reference, other)
        np.abs(error, out=error)
        squares, sums = _products(error, error), error.sum(1)
        self.records += len(error)
        self.elements += error.size
        self._absolute += float(sums.sum())
        self._square += float(squares.sum())
        self._reference += float(_products(reference, reference).sum())
        self._other += float(_products(other, other).sum())
        self._product += float(_products(reference, other).sum())
        peaks = error.max(1)
        self._largest = float(np.maximum(self._largest, peaks.max()))
        self._peaks += float((peaks / (np.ptp(reference, axis=1) + EPSILON)).sum())
        self._widen("mse", squares / error.shape[1])
        self._widen("tae", sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._percent += float(np.divide(error, np.abs(reference), out=error).sum())

    def _widen(self, name: str, values: Floats) -> None:
        old = self._by_record.get(name, Range(np.inf, -np.inf))
        low, high = float(values.min()), float(values.max())
        self._by_record[name] = Range(min(old.low, low), max(old.high, high))

    def range(self, name: str) -> Range | None:
        """Return the range of "mse" or "tae" over records; None before the first."""
        return self._by_record.get(name)

    def measures(self) -> Measures:
        """Return the measures of all that was counted; nothing has none."""
        if not self.elements:
            return Measures(*[None] * len(fields(Measures)))
        records, elements = self.records, self.elements
        mse = self._square / elements
        return Measures(
            relative=_finite(_ratio(self._square, self._reference) ** 0.5),
            snr_db=self._snr(),
            cosine=self._cosine(),
            mpeir=_finite(self._peaks / records),
            mse=_finite(mse),
            mae=_finite(self._absolute / elements),
            mape=_finite(100 * self._percent / elements),
            tae=_finite(self._absolute / records),
            srmse=_finite(mse**0.5 / self.scale) if self.scale else None,
            largest=_finite(self._largest),
        )

    def _snr(self) -> float | None:
        """Compute the signal-to-noise ratio; None where there is no error at all, or nothing but
        error.
        """
        ratio = _ratio(self._reference, self._square)
        return _finite(float(10 * np.log10(ratio))) if ratio > 0 else None

    def _cosine(self) -> float | None:
        if self._square == 0:
            return 1.0
        norms = (self._reference * self._other) ** 0.5
        return _finite(self._product / norms) if norms else None


def _products(a: Floats, b: Floats) -> Floats:
    """Add up each record's products of elements [records, elements], without an array of them."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def top_k_match(reference: Floats, other: Floats, k: int) -> Floats:
    """Compute for each record how many of the ``k`` largest elements are the same ones, from 0 to
    1.

    Both are [records, elements] with at least ``k`` elements; of equal ones the first count.
    """
    first, second = (np.argsort(-x, axis=1, kind="stable")[:, :k] for x in (reference, other))
    same = (first[:, :, None] == second[:, None, :]).any(2)
    return np.asarray(same.mean(1), np.float64)


def _ratio(a: float, b: float) -> float:
    """Divide, also by 0: NaN or infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(a) / np.float64(b)) if a or b else 0.0


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
