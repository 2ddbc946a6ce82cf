"""Sample what layers see and compute at sampled positions, in the float and in the quantized
network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Progress, Records
from luciole.ir import Array, Model, Op, Value
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.positions import (
    Dense,
    Rows,
    input_rows,
    output_rows,
    pick,
    positions,
    weight_matrix,
)
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.network.even_inputs import joined
from luciole.lquantizer.network.preparation import Job, Preparation, pairs, present

HELD_BACK = 5
"""One record in so many judges what was learned from the others."""


@dataclass
class Aim:
    """What the float network computes at a job's sampled positions: the layers' outputs [rows, o],
    and the other branches there, for each layer that has one.
    """

    outputs: list[Array]
    others: list[Array | None]


@dataclass
class _Side:
    """What one operator's rows are gathered in, batch by batch."""

    rows: list[Rows]
    branch: list[Array]
    records: list[NDArray[np.intp]]


def float_side(
    prepared: Preparation, records: Records, progress: Progress | None = None
) -> list[Aim]:
    """Gather what each job aims at, from one run of the float network."""
    jobs, twins = prepared.jobs, prepared.twins
    values = [v for job in jobs for v in (*(op.output for op in job.group.ops), *present(job))]
    kept: list[list[Array]] = [[] for _ in values]
    wanted = [twins[v] for v in values]
    for part, arrays in watched(prepared.reference, wanted, records, prepared.batch, progress):
        found = iter(zip(arrays, kept, strict=True))
        for job in jobs:
            for op in (*job.group.ops, *(op for op, v in pairs(job) if v is not None)):
                array, rows = next(found)
                rows.append(_sampled(job, op, array, part))
    joined = iter([np.concatenate(rows) for rows in kept])
    aims = []
    for job in jobs:
        outputs = [next(joined) for _ in job.group.ops]
        aims.append(Aim(outputs, [None if v is None else next(joined) for v in job.others]))
    return aims


def float_rows(prepared: Preparation, job: Job, records: Records) -> Rows:
    """Gather the rows that a job's layers meet in the float network."""
    return _input_rows(prepared.reference, job, job.float_inputs, records, prepared.batch)


def _input_rows(
    model: Model, job: Job, inputs: Sequence[Value], records: Records, batch: int
) -> Rows:
    kept: list[list[Rows]] = [[] for _ in inputs]
    for part, arrays in watched(model, inputs, records, batch):
        for op, x, rows in zip(job.group.ops, arrays, kept, strict=True):
            rows.append(input_rows(op, x, pick(positions(op, x), part, job.positions, job.seed)))
    return joined([one for rows in kept for one in rows])


def quantized_side(
    front: Front, job: Job, later: Iterable[Value] = (), changing: Collection[Op] = ()
) -> tuple[Rows, list[Array | None], NDArray[np.intp]]:
    """Gather the input rows of all of a job's layers, the branch added to each at the same
    positions, and each row's record; what ``later`` tensors need is kept, as ``Front.run`` does.
    """
    ops = job.group.ops
    sides = [_Side([], [], []) for _ in ops]
    values = [*(op.input for op in ops), *present(job)]
    for part, arrays in front.run(values, later, changing):
        added = iter(arrays[len(ops) :])
        for (op, other), x, side in zip(pairs(job), arrays[: len(ops)], sides, strict=True):
            picks = pick(positions(op, x), part, job.positions, job.seed)
            side.rows.append(input_rows(op, x, picks))
            side.records.append(np.repeat(np.arange(part.start, part.stop), picks.shape[1]))
            if other is not None:
                side.branch.append(_sampled(job, op, next(added), part))
    return (
        joined([r for side in sides for r in side.rows]),
        [np.concatenate(side.branch) if side.branch else None for side in sides],
        np.concatenate([n for side in sides for n in side.records]),
    )


def _sampled(job: Job, op: Dense, y: Array, part: range) -> Array:
    """Take a result of a job's layer, or what is added to it, at the sampled positions."""
    outputs = len(weight_matrix(op))
    picks = pick(y[0].size // outputs, part, job.positions, job.seed)
    return output_rows(y, outputs, picks)
