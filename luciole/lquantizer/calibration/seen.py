"""Watch how the elements of tensors are spread, batch by batch and with bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Progress, Records, check_records
from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.ir.analysis.endless import ENDLESS, endless_tensors
from luciole.ir.quant import Contrast
from luciole.lquantizer.calibration.saturated import Saturated
from luciole.lquantizer.calibration.spread import spread
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.affine import Range

_BINS = 8192
"""Bins of a histogram, half of them for each sign."""
_COUNTED = 4_000_000
"""Elements of a tensor that are counted in all; extremes are of every one."""
_LEAST = 4096
"""Elements that are counted of each record, however many there are."""
_KEPT = 8192
"""Records whose extremes are kept at the most: of more, every second, fourth, ... one."""


_NOTHING = 104.0
"""How far below the largest of a row the exponential of an element is 0 beside it in float32."""


@dataclass(frozen=True)
class Rows:
    """The contrast of an operator in rows of ``length`` elements, which it multiplies by a
    ``factor`` first.
    """

    contrast: Contrast
    factor: float
    length: int

    @classmethod
    def of(cls, op: Op, value: Value) -> Rows | None:
        """Return the contrast that an operator sees in rows of a tensor, None where it sees all."""
        contrast = None if op.quant is None else op.quant.contrast
        if contrast is None or not value.shape:
            return None
        factor = float(op.attributes()[contrast.factor]) if contrast.factor else 1.0
        return cls(contrast, factor, value.shape[-1] or 1) if factor > 0 else None

    def distance(self, dtype: TensorType) -> float:
        """Return how far below the largest an element is nothing in results of a type."""
        return self.contrast.distance(dtype, self.length) / self.factor


@dataclass
class Seen:
    """Statistics of one tensor: its extremes in each record, and a histogram, in as much memory
    however many records there are.

    Bins are a power of two wide and begin at 0, so that two make one of the next width; zeros are
    counted by themselves, because a RELU makes many. Beyond 8,192 records the extremes of one in
    ``apart`` are kept.
    """

    lows: array[float] = field(default_factory=lambda: array("d"))
    highs: array[float] = field(default_factory=lambda: array("d"))
    records: int = 0
    apart: int = 1
    """How many records lie between two whose extremes are kept."""
    low: float = np.inf
    """The smallest element of all."""
    high: float = -np.inf
    """The largest element of all."""
    width: float = 0.0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))
    zeros: int = 0
    most: int = _COUNTED
    """Elements of one record that are counted."""
    is_endless: bool = False
    """Whether infinities, and numbers that stand for them, are left out."""
    rows: Rows | None = None
    """The contrast of the readers in a row, where that alone counts."""
    as_read: Range | None = None
    """The range of the least error in the results of saturating readers, if there are no others."""
    lowest_peak: float = np.inf
    """The lowest of the rows' largest elements, of rows with masked elements."""

    def add(self, batch: Array) -> None:
        """Take in some records [records, ...] of finite numbers; one without any counts as 0."""
        batch = self._bounded(batch)
        flat = batch.reshape(len(batch), -1) if batch.size else np.zeros((len(batch), 1))
        lows, highs = flat.min(1), flat.max(1)
        self.low, self.high = min(self.low, float(lows.min())), max(self.high, float(highs.max()))
        self._keep(lows, highs)
        self._count(spread(flat, self.most).reshape(-1))

    def _bounded(self, batch: Array) -> Array:
        """Replace masked elements by their row's peak, and infinities by the least and the largest
        of all other elements.
        """
        if self.rows is not None and batch.size:
            with np.errstate(all="ignore"):
                peaks = batch.max(-1, keepdims=True)
                masked = (peaks - batch) * self.rows.factor > _NOTHING
            rows = peaks[masked.any(-1, keepdims=True) & (np.abs(peaks) < ENDLESS)]
            self.lowest_peak = min(self.lowest_peak, float(rows.min(initial=np.inf)))
            batch = np.where(masked, peaks, batch)
        ends = ~(np.abs(batch) < ENDLESS) if self.is_endless else np.zeros(0, np.bool_)
        if not ends.any():
            return batch
        rest = batch[~ends]
        limits = (float(rest.min()), float(rest.max())) if rest.size else (0.0, 0.0)
        return np.asarray(np.where(ends, np.clip(batch, *limits), batch))

    def floor(self, dtype: TensorType) -> float:
        """Return how far down integers must reach so that masked elements count for nothing."""
        if self.rows is None or self.lowest_peak == np.inf:
            return np.inf
        return self.lowest_peak - self.rows.distance(dtype)

    def judged(self, dtype: TensorType) -> Range | None:
        """Return the range of integers of a type that saturating readers judge best, None where
        others read, too, and of 16 bits, which tell all apart.
        """
        return self.as_read if dtype in (TensorType.INT8, TensorType.UINT8) else None

    def _keep(self, lows: Array, highs: Array) -> None:
        """Keep the extremes of the next records, of fewer where there are many."""
        first = -self.records % self.apart
        self.lows.extend(lows[first :: self.apart].tolist())
        self.highs.extend(highs[first :: self.apart].tolist())
        self.records += len(lows)
        while len(self.lows) > _KEPT:
            self.lows, self.highs, self.apart = self.lows[::2], self.highs[::2], 2 * self.apart

    def histogram(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the middles of the bins that are not empty, 0 among them, and their counts."""
        places = np.flatnonzero(self.counts)
        middles = (places - _BINS // 2 + 0.5) * self.width
        counts = self.counts[places].astype(np.float64)
        return np.append(middles, 0.0), np.append(counts, float(self.zeros))

    def _count(self, elements: Array) -> None:
        peak = float(np.abs(elements).max(initial=0.0))
        if peak > 0 and self.width == 0:
            self.width = 2.0 ** np.ceil(np.log2(peak / (_BINS // 2)))
        while peak > self.width * (_BINS // 2 - 1):
            self._widen()
        self.zeros += int(elements.size - np.count_nonzero(elements))
        places = np.floor(elements[elements != 0] / self.width).astype(np.int64) + _BINS // 2
        self.counts += np.bincount(places, minlength=_BINS)

    def _widen(self) -> None:
        """Join each bin and its neighbour."""
        pairs, self.width = self.counts.reshape(-1, 2).sum(1), 2 * self.width
        self.counts[:] = 0
        self.counts[_BINS // 4 : _BINS // 4 + len(pairs)] = pairs


def seen(
    model: Model,
    values: Sequence[Value],
    records: Records,
    batch: int,
    progress: Progress | None = None,
    judge_readers: bool = False,
) -> dict[Value, Seen]:
    """Run a model's main graph over all records and return the statistics of some tensors, with
    ``judge_readers`` also the range that saturating readers judge best.

    Raises QuantizeError where NaN appears, or infinity that comes from no constant.
    """
    most = max(_LEAST, _COUNTED // check_records(model.graph, records))
    endless = endless_tensors(model.graph)
    statistics = {
        value: Seen(most=most, is_endless=value in endless, rows=_rows(value, endless))
        for value in values
    }
    judged = [value for value in values if judge_readers and value not in endless]
    saturated = {value: one for value in judged if (one := Saturated.of(value))}
    for _, arrays in watched(model, values, records, batch, progress, endless):
        for value, batch_of_it in zip(values, arrays, strict=True):
            statistics[value].add(batch_of_it)
            if value in saturated:
                saturated[value].add(batch_of_it)
    for value, one in saturated.items():
        statistics[value].as_read = one.range()
    return statistics


def _rows(value: Value, endless: Container[Value]) -> Rows | None:
    """Return the finest contrast that readers of a tensor see in its rows, None where one of them
    sees all, unless it may hold infinities.
    """
    every = [Rows.of(use.op, value) for use in value.users]
    told = [rows for rows in every if rows is not None]
    if not told or (value not in endless and (value.is_output or len(told) < len(every))):
        return None
    return max(told, key=lambda rows: rows.distance(TensorType.INT16))
