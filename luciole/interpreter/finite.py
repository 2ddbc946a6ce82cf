"""Find NaN and infinity among records, and refuse what holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from luciole.interpreter.affine import REAL, takes_real
from luciole.interpreter.errors import InputError
from luciole.interpreter.records import Records
from luciole.interpreter.samples import Samples, Selection
from luciole.ir import Array, Graph, Value
from luciole.ir.value import shape_text

_BATCH = 64
"""Records that are looked at together."""


class Fault(NamedTuple):
    """A number that is not finite: its record, its place in that, and what it is."""

    record: int
    element: str
    story: str


def first_fault(fed: Array, stored: Array) -> Fault | None:
    """Find the first number of records [records, ...] that is NaN or infinite where they are
    ``fed``, as they were ``stored``; None where all are finite.
    """
    if fed.dtype.kind not in "fc":
        return None
    finite = np.isfinite(fed)
    if finite.all():
        return None
    record, *element = (int(i) for i in np.unravel_index(int(np.argmin(finite)), fed.shape))
    was, now = stored[(record, *element)], fed[(record, *element)]
    story = f"is {was}" if not np.isfinite(was) else f"is {was}, which becomes {now}"
    return Fault(record, shape_text(tuple(element)), f"{story}: not finite")


def check_finite(graph: Graph, records: Records) -> None:
    """Refuse NaN and infinity in records of a graph's inputs: nothing can be measured on them.

    Raises InputError that says where.
    """
    for value in graph.inputs:
        samples = records[value.name]
        if isinstance(samples, Selection):
            samples = replace(samples, convert=None)  # the integers of NaN are as good as any
        if samples.dtype.kind in "fc":
            _check(value, samples)


def _check(value: Value, samples: Samples) -> None:
    becomes_float32 = samples.dtype in REAL and takes_real(value)
    for begin in range(0, len(samples), _BATCH):
        stored = np.asarray(samples[begin : begin + _BATCH])
        with np.errstate(over="ignore"):
            fed = stored.astype(np.float32, copy=False) if becomes_float32 else stored
        fault = first_fault(fed, stored)
        if fault is not None:
            place = f"element {fault.element} of record {begin + fault.record}"
            raise InputError(f"input {value.name!r}: {place} {fault.story}")
