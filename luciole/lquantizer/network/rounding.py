"""Say what rounding does to each tensor, by what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Value
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.network.grids import Grids
from luciole.lquantizer.report import TensorReport, snr_db

_FINE = 4
"""Bins that a step must be wide so that the middles of bins show its error."""


def tensor_reports(grids: Grids, seen: Mapping[Value, Seen], ranges: str) -> list[TensorReport]:
    """Report on every tensor that is rounded, and where an operator reads one otherwise than it is
    made; ``ranges`` is the rule that ranges are from.
    """
    reports = []
    for value in (value for value in seen if value in grids.tensors):
        affine = grids.tensors[value]
        origin = grids.origins[value]
        fixed = origin.startswith("fixed")
        rule = origin if fixed else ", ".join(filter(None, (ranges, origin)))
        reports.append(_report(value, affine, seen[value], rule))
    for (op, slot), affine in grids.operands.items():
        read = op.operands[slot]
        if read is not None and read in seen:
            reports.append(_report(read, affine, seen[read], f"as {op.kind} {op.name!r} reads it"))
    return reports


def _report(value: Value, affine: Affine, seen: Seen, rule: str) -> TensorReport:
    step, point = (float(numbers[0]) for numbers in affine.parameters)
    least, most = ((limit - point) * step for limit in affine.limits)
    middles, counts = seen.histogram()
    middles = np.clip(middles, seen.low, seen.high)  # a bin may reach beyond the last element
    squares = np.square(affine.decode(affine.encode(middles)) - middles)
    beyond = (middles < least - step / 2) | (middles > most + step / 2)
    if step < _FINE * seen.width:  # what is in one bin is spread over steps
        squares = np.where(beyond, squares, np.where(middles == 0, 0.0, step**2 / 12))
    error = squares @ counts
    total = max(float(counts.sum()), 1.0)
    return TensorReport(
        value.name,
        affine.dtype.name,
        seen.low,
        seen.high,
        least,
        most,
        step,
        float(counts[beyond].sum()) / total,
        snr_db(float(np.square(middles) @ counts) / total, float(error) / total),
        rule,
    )
