"""Aims of layers: what the float network computes, in as much memory however many layers it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.records import Progress, check_records
from luciole.ir import Array, Op, Value
from luciole.ir.value import element_count
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.rows import Product, Sampling, result_rows, weight_rows
from luciole.lquantizer.network.branches import Aim, Branches

MOST_BYTES = 64_000_000
"""Bytes of the rows that are kept at once, unless those of one layer take more."""


def unchanged(op: Op, aim: Aim) -> Aim:
    """Return an aim as it is."""
    return aim


@dataclass(eq=False)
class Aims(Mapping[Op, Aim]):
    """Rows of the float network's results in front of layers' activations, and of the branches
    that are added there.

    They are computed for some layers at once, as many as ``most`` bytes hold in the given order,
    when one of these is asked for; those of the layers before are forgotten.
    """

    front: Front
    """The float network, and how far it was run."""
    layers: Mapping[Product, Sampling]
    branches: Branches
    progress: Progress | None = None
    change: Callable[[Op, Aim], Aim] = unchanged
    """What becomes of each aim."""
    most: int = MOST_BYTES
    _groups: dict[Op, list[Product]] = field(init=False)
    _known: dict[Op, Aim] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Put layers in groups."""
        groups: list[list[Product]] = [[]]
        room = self.most
        for op in self.layers:
            size = self._bytes(op)
            if size > room and groups[-1]:
                groups.append([])
                room = self.most
            groups[-1].append(op)
            room -= size
        self._groups = {op: group for group in groups for op in group}

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.layers)

    def __contains__(self, op: object) -> bool:
        return op in self.layers

    def __getitem__(self, op: Op) -> Aim:
        if op not in self._known:
            group = self._groups[op]
            self._known = {}  # before the others take their room
            self._known = {op: self.change(op, aim) for op, aim in self._computed(group)}
        return self._known[op]

    def _bytes(self, op: Product) -> int:
        """Estimate the bytes of a layer's rows."""
        outputs = len(weight_rows(op))
        shape = self.branches.twins[op].results[0].shape
        positions = element_count(tuple(n or 1 for n in shape[1:])) // outputs
        taken = self.layers[op].positions
        rows = positions if taken is None else min(positions, taken)
        sides = 1 if self.branches.in_float(op) is None else 2
        return 4 * sides * rows * outputs * self._records

    def _computed(self, group: Sequence[Product]) -> Iterator[tuple[Op, Aim]]:
        """Run the float network as far as the layers of a group, and take their rows."""
        order = list(self.layers)
        added = [op for op in group if self.branches.in_float(op) is not None]
        later = self._values(order[order.index(group[-1]) + 1 :])
        rows: list[Array] = []
        for part, arrays in self.front.run(self._values(group), later, progress=self.progress):
            taken = [
                result_rows(op, y, part, self.layers[op])
                for op, y in zip((*group, *added), arrays, strict=True)
            ]
            rows = rows or [_room(piece, len(part), self._records) for piece in taken]
            for all_rows, piece in zip(rows, taken, strict=True):
                each = len(piece) // len(part)
                all_rows[part.start * each : part.stop * each] = piece
        self.progress = None  # it counted every record
        beside = dict(zip(added, rows[len(group) :], strict=True))
        yield from ((op, Aim(y, beside.get(op))) for op, y in zip(group, rows, strict=False))

    @property
    def _records(self) -> int:
        """Number of records."""
        return check_records(self.front.model.graph, self.front.records)

    def _values(self, layers: Sequence[Product]) -> list[Value]:
        """List the results of layers in the float network, then the branches that are added."""
        results = [self.branches.twins[op].results[0] for op in layers]
        added = (self.branches.in_float(op) for op in layers)
        return [*results, *(value for value in added if value is not None)]


def _room(piece: Array, records: int, whole: int) -> Array:
    """Take room for the rows of all records, given those of some."""
    return np.empty((len(piece) // records * whole, *piece.shape[1:]), piece.dtype)
