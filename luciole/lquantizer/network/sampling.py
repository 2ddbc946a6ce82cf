"""Sample what layers see at sampled positions in a network that is on its way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Op, Value
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import (
    Product,
    Rows,
    Sampling,
    input_rows,
    positions,
    result_rows,
)


@dataclass
class _Side:
    """One operator's rows, gathered batch by batch."""

    op: Product
    branch: Value | None
    rows: list[Rows] = field(default_factory=list)
    beside: list[Array] = field(default_factory=list)
    records: list[NDArray[np.intp]] = field(default_factory=list)

    def add(
        self, records: range, x: Array, added: Iterator[Array], sampling: Sampling, masked: bool
    ) -> None:
        """Take rows of a batch of inputs, and of the next array that is ``added``."""
        picks = sampling.picks(positions(self.op, x), records)
        self.rows.append(input_rows(self.op, x, picks, masked=masked))
        self.records.append(np.repeat(np.arange(records.start, records.stop), picks.shape[1]))
        if self.branch is not None:
            self.beside.append(result_rows(self.op, next(added), records, sampling))


@dataclass(frozen=True)
class Sampled:
    """The input rows of layers, the branch added to each at the same positions [r, o], and the
    record that each row is of [r].
    """

    rows: Rows
    branches: list[Array | None]
    records: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        front: Front,
        ops: Sequence[Product],
        sampling: Sampling,
        branches: Sequence[Value | None] = (),
        later: Iterable[Value] = (),
        changing: Collection[Op] = (),
        *,
        masked: bool = True,
    ) -> Sampled:
        """Gather them from a network that is run as far as that takes; what ``later`` tensors need
        is kept, as ``Front.run`` does.
        """
        beside = branches or [None] * len(ops)
        sides = [_Side(op, value) for op, value in zip(ops, beside, strict=True)]
        values = [*(op.input for op in ops), *(value for value in beside if value is not None)]
        for part, arrays in front.run(values, later, changing):
            added = iter(arrays[len(ops) :])
            for side, x in zip(sides, arrays, strict=False):
                side.add(part, x, added, sampling, masked)
        return cls(
            Rows.joined([rows for side in sides for rows in side.rows]),
            [np.concatenate(side.beside) if side.beside else None for side in sides],
            np.concatenate([numbers for side in sides for numbers in side.records]),
        )
