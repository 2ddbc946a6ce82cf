"""Layers as matrix products: which input elements each weight of a dense layer or convolution
meets.

A layer's weights are a matrix [o, n]; each of its output positions is that matrix times a row of n
input elements. A layer of several groups of channels has rows of its own for each: a depthwise
convolution for each channel of its input. Rows are taken at sampled positions, so that memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Op
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rules import window
from luciole.kernels.layers.geometry.windows import patches

Dense = FullyConnected | Conv2D
Product = Dense | DepthwiseConv2D
"""Layers whose rows can be taken."""
Picks = NDArray[np.intp]
"""Sampled output positions of each record: [records, positions]."""

_ROWS, _ELEMENTS = 30_000, 16_000_000
"""Rows that a layer is learned from at the most where nothing else is said, and their elements."""
_EACH, _FEWEST = 32, 4096
"""Rows for each weight of an output that are as good as more where weights have 8 bits, and the
fewest; at 4 bits they cost up to 2 dB."""


@dataclass(frozen=True)
class Rows:
    """Input rows [r, n], of each group [groups, r, n] where there are several, and which elements
    lie inside the image [r, n] (None: all do, or nobody asked).
    """

    values: Array
    inside: NDArray[np.bool_] | None = None

    @property
    def by_group(self) -> Array:
        """The rows of each group, be it one: [groups, r, n]."""
        return self.values if self.values.ndim > 2 else self.values[None]

    def moments(self, outputs: int) -> Array:
        """Compute the second moments of what each output's weights meet, around its mean, which the
        bias takes up: [o, n, n].
        """
        rows = self.by_group
        centred = rows - rows.mean(1, keepdims=True)
        moments = centred.transpose(0, 2, 1) @ centred / np.float32(rows.shape[1])
        return np.repeat(moments, outputs // len(moments), axis=0)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Join rows, with their masks where there are some."""
        masks = [part.inside for part in parts if part.inside is not None]
        values = np.concatenate([part.values for part in parts], -2)
        return cls(values, np.concatenate(masks) if masks else None)


@dataclass(frozen=True)
class Sampling:
    """Where rows are taken: at most so many ``positions`` of each record (None: all), drawn by
    ``seed``.
    """

    positions: int | None
    seed: int

    @classmethod
    def of(cls, count: int, seed: int, op: Op, *, fine: bool = False) -> Sampling:
        """Choose positions of a layer for so many records; fewer for ``fine`` weights."""
        rows = min(_ROWS, _ELEMENTS // _row_elements(op))
        if fine:
            rows = min(rows, max(_EACH * int(weight_rows(op).shape[1]), _FEWEST))
        return cls(max(1, rows // count), seed)

    def picks(self, positions: int, records: range) -> Picks:
        """Choose among the positions of some records, the same for the same record and seed."""
        if self.positions is None or positions <= self.positions:
            return np.broadcast_to(np.arange(positions), (len(records), positions))
        drawn = [np.random.default_rng((self.seed, r)).permutation(positions) for r in records]
        return np.stack([places[: self.positions] for places in drawn])


def weight_rows(op: Op) -> Array:
    """Shape a layer's constant weights as [o, n]; a convolution's n runs over kernel rows, kernel
    columns, channels.
    """
    value = weight_constant(op)
    data = None if value is None else value.data
    assert data is not None, "a layer that is learned has constant weights"
    rows = np.moveaxis(data, 0 if op.quant is None else op.quant.axis, 0)
    return np.ascontiguousarray(rows.reshape(len(rows), -1))


def bias_of(op: Op) -> Array:
    """Return a layer's constant bias [o], 0 where it has none."""
    value = op.given_operands().get("" if op.quant is None else op.quant.bias or "")
    data = None if value is None else value.data
    return np.zeros(len(weight_rows(op)), np.float32) if data is None else data.reshape(-1)


def groups_of(op: Product) -> int:
    """Count the groups of channels that a layer multiplies apart from each other."""
    if isinstance(op, FullyConnected):
        return 1
    channels = op.input.shape[-1] or 1
    return channels if isinstance(op, DepthwiseConv2D) else channels // op.filter.dims[-1]


def _row_elements(op: Op) -> int:
    """Count the elements of a layer's row, those of all groups together."""
    groups = groups_of(op) if isinstance(op, Product) else 1
    return max(1, groups * int(weight_rows(op).shape[1]))


def positions(op: Product, x: Array) -> int:
    """Count the output positions of one record, given a batch of inputs."""
    if isinstance(op, FullyConnected):
        return int(x[0].size // weight_rows(op).shape[1])
    _, kh, kw, _ = op.filter.dims
    height, width, channels = x.shape[-3:]
    out_h = window(height, kh, op.stride_h, op.dilation_h_factor, op.padding)
    out_w = window(width, kw, op.stride_w, op.dilation_w_factor, op.padding)
    return (out_h or 0) * (out_w or 0) * int(x[0].size // (height * width * channels))


def output_rows(y: Array, outputs: int, picks: Picks) -> Array:
    """Pick outputs [records, ..., o] at sampled positions: [records * positions, o]."""
    by_position = y.reshape(len(picks), -1, outputs)
    return by_position[np.arange(len(picks))[:, None], picks].reshape(-1, outputs)


def input_rows(op: Product, x: Array, picks: Picks, *, masked: bool = True) -> Rows:
    """Lay out inputs [records, ...] as the rows of sampled output positions, ``masked`` by the
    parts inside the image; a record may hold several images.
    """
    if isinstance(op, FullyConnected):
        return Rows(output_rows(x, weight_rows(op).shape[1], picks))
    images = x.reshape(-1, *x.shape[-3:])
    windows = _windows_of(op, images)
    image, row, column = _window_places(windows, picks)
    values = windows[image, row, column]
    groups = groups_of(op)
    if not masked:
        return Rows(_flat(values, groups))
    mask = _windows_of(op, np.ones((1, *images.shape[1:3], 1), np.bool_))
    inside = np.broadcast_to(mask[0, row, column], values.shape)
    return Rows(_flat(values, groups), _flat(inside, groups))


def products(rows: Rows, weights: Array) -> Array:
    """Multiply rows [r, n], or those of each group, with weights [o, n]: [r, o]."""
    if rows.values.ndim == 2:
        return rows.values @ weights.T
    own = weights.reshape(len(rows.values), -1, weights.shape[1])
    y = rows.values @ np.swapaxes(own, -1, -2)
    return y.transpose(1, 0, 2).reshape(y.shape[1], -1)


def _windows_of(op: Conv2D | DepthwiseConv2D, images: Array) -> Array:
    """Take the windows of a convolution: [images, rows, columns, channels, kh, kw]."""
    _, kh, kw, _ = op.filter.dims
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    return patches(images, (kh, kw), stride, op.padding, dilation)


def _window_places(windows: Array, picks: Picks) -> tuple[Picks, Picks, Picks]:
    """Find image, row and column of sampled positions, of records with as many images each."""
    of_record, place = np.divmod(picks, windows.shape[1] * windows.shape[2])
    image = np.arange(len(picks))[:, None] * (len(windows) // len(picks)) + of_record
    row, column = np.divmod(place, windows.shape[2])
    return image, row, column


def _flat(windows: Array, groups: int) -> Array:
    """Lay [records, positions, c, kh, kw] out as rows in the order of the weights: [r, n], or
    [groups, r, n] of several.
    """
    split = windows.reshape(-1, groups, windows.shape[2] // groups, *windows.shape[-2:])
    rows = split.transpose(1, 0, 3, 4, 2).reshape(groups, len(split), -1)
    return rows if groups > 1 else rows[0]


def result_rows(op: Product, y: Array, records: range, sampling: Sampling) -> Array:
    """Take a batch of a layer's results, or of branches, at sampled positions: [r, o]."""
    outputs = len(weight_rows(op))
    return output_rows(y, outputs, sampling.picks(y[0].size // outputs, records))
