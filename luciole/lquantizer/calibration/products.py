"""Layers as matrix products of groups of channels, depthwise convolutions among them.

Each group of a layer multiplies rows of its input with its weights; an ordinary convolution and a
dense layer have one group, a depthwise convolution one for each channel of its input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.records import Progress, Records
from luciole.ir import Array, Model, Op, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.calibration.front import Front
from luciole.lquantizer.calibration.positions import (
    output_rows,
    pick,
    window_places,
    windows_of,
)
from luciole.lquantizer.calibration.watch import watched

Product = FullyConnected | Conv2D | DepthwiseConv2D
"""Layers whose rows can be taken."""

_ROWS = 30_000
"""Rows that a layer is learned from at the most."""


@dataclass(frozen=True)
class Sampling:
    """Where rows are taken: at most so many ``positions`` of each record, drawn by ``seed``."""

    positions: int
    seed: int

    @classmethod
    def of(cls, count: int, seed: int) -> Sampling:
        """Choose positions for so many records."""
        return cls(max(1, _ROWS // count), seed)


def weight_rows(op: Op) -> Array:
    """Shape a layer's constant weights as [o, n]."""
    value = weight_constant(op)
    data = None if value is None else value.data
    assert data is not None, "a layer that is learned has constant weights"
    rows = np.moveaxis(data, 0 if op.quant is None else op.quant.axis, 0)
    return np.ascontiguousarray(rows.reshape(len(rows), -1))


def groups_of(op: Product) -> int:
    """Count the groups of channels that a layer multiplies apart from each other."""
    if isinstance(op, FullyConnected):
        return 1
    channels = op.input.shape[-1] or 1
    return channels if isinstance(op, DepthwiseConv2D) else channels // op.filter.dims[-1]


def input_rows(op: Product, x: Array, records: range, sampling: Sampling) -> Array:
    """Take the rows of a batch of inputs that sampled positions meet: [groups, r, n]."""
    n = weight_rows(op).shape[1]
    if isinstance(op, FullyConnected):
        by_record = x.reshape(len(x), -1, n)
        picks = pick(by_record.shape[1], records, sampling.positions, sampling.seed)
        return output_rows(by_record, n, picks)[None]
    images = x.reshape(-1, *x.shape[-3:])
    windows = windows_of(op, images)
    positions = len(images) // len(records) * windows.shape[1] * windows.shape[2]
    picks = pick(positions, records, sampling.positions, sampling.seed)
    taken = windows[window_places(windows, picks)]  # records, positions, c, kh, kw
    groups = groups_of(op)
    split = taken.reshape(-1, groups, taken.shape[2] // groups, *taken.shape[-2:])
    return split.transpose(1, 0, 3, 4, 2).reshape(groups, len(split), n)


def result_rows(op: Product, y: Array, records: range, sampling: Sampling) -> Array:
    """Take a batch of results at the same positions: [r, o]."""
    outputs = len(weight_rows(op))
    picks = pick(y[0].size // outputs, records, sampling.positions, sampling.seed)
    return output_rows(y, outputs, picks)


def rows_of_results(
    model: Model,
    layers: Sequence[tuple[Product, Value]],
    records: Records,
    batch: int,
    sampling: Sampling,
    progress: Progress | None = None,
) -> list[Array]:
    """Run a network once and take rows of each layer's result, which is in the value beside it."""
    kept: list[list[Array]] = [[] for _ in layers]
    values = [value for _, value in layers]
    for part, arrays in watched(model, values, records, batch, progress):
        for (op, _), y, rows in zip(layers, arrays, kept, strict=True):
            rows.append(result_rows(op, y, part, sampling))
    return [np.concatenate(rows) for rows in kept]


def rows_of_input(
    front: Front,
    op: Product,
    sampling: Sampling,
    later: Iterable[Value] = (),
    changing: Collection[Op] = (),
) -> Array:
    """Run a network up to a layer and take the rows that it meets: [groups, r, n]; what ``later``
    tensors need is kept, as ``Front.run`` does.
    """
    return rows_beside(front, op, None, sampling, later, changing)[0]


def rows_beside(
    front: Front,
    op: Product,
    branch: Value | None,
    sampling: Sampling,
    later: Iterable[Value] = (),
    changing: Collection[Op] = (),
) -> tuple[Array, Array | None]:
    """Take the rows that a layer meets, as ``rows_of_input`` does, and those of a ``branch`` that
    is added to its result, where there is one: [r, o].
    """
    x = op.operands[0] or op.output
    rows: list[Array] = []
    beside: list[Array] = []
    for part, (a, *b) in front.run([x, *([branch] if branch else [])], later, changing):
        rows.append(input_rows(op, a, part, sampling))
        beside += [result_rows(op, y, part, sampling) for y in b]
    return np.concatenate(rows, 1), np.concatenate(beside) if branch else None
