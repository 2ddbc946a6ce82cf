"""Layers as matrix products: which input elements each weight of a dense layer or convolution
meets.

A layer's weights are a matrix [o, n]; each of its output positions is that matrix times a row of n
input elements. Rows are taken at sampled positions, so that memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rules import window
from luciole.kernels.layers.geometry.windows import patches

Dense = FullyConnected | Conv2D
Picks = NDArray[np.intp]
"""Sampled output positions of each record: [records, positions]."""


@dataclass(frozen=True)
class Rows:
    """Input rows [r, n], and which elements lie inside the image [r, n] (None: all do)."""

    values: Array
    inside: NDArray[np.bool_] | None


def weight_matrix(op: Dense) -> Array:
    """Shape a layer's weights as [o, n]; a convolution's n runs over kernel rows, kernel columns,
    channels.
    """
    data = (op.weights if isinstance(op, FullyConnected) else op.filter).data
    assert data is not None, "a layer that qualifies has constant weights"
    return data.reshape(len(data), -1)


def pick(positions: int, records: range, most: int | None, seed: int) -> Picks:
    """Take at most ``most`` of the positions of each record (None: all), the same for the same
    record and seed.
    """
    if most is None or positions <= most:
        return np.broadcast_to(np.arange(positions), (len(records), positions))
    chosen = [np.random.default_rng((seed, r)).permutation(positions)[:most] for r in records]
    return np.stack(chosen)


def positions(op: Dense, x: Array) -> int:
    """List output positions of one record, given a batch of inputs."""
    if isinstance(op, FullyConnected):
        return int(x[0].size // weight_matrix(op).shape[1])
    _, kh, kw, _ = op.filter.dims
    height, width, channels = x.shape[-3:]
    out_h = window(height, kh, op.stride_h, op.dilation_h_factor, op.padding)
    out_w = window(width, kw, op.stride_w, op.dilation_w_factor, op.padding)
    return (out_h or 0) * (out_w or 0) * int(x[0].size // (height * width * channels))


def output_rows(y: Array, outputs: int, picks: Picks) -> Array:
    """Pick outputs [records, ..., o] at sampled positions: [records * positions, o]."""
    by_position = y.reshape(len(picks), -1, outputs)
    return by_position[np.arange(len(picks))[:, None], picks].reshape(-1, outputs)


def input_rows(op: Dense, x: Array, picks: Picks) -> Rows:
    """Lay out inputs [records, ...] as the rows that sampled output positions meet; a record may
    hold several images.
    """
    if isinstance(op, FullyConnected):
        n = weight_matrix(op).shape[1]
        return Rows(output_rows(x, n, picks), None)
    images = x.reshape(-1, *x.shape[-3:])
    windows = windows_of(op, images)
    image, row, column = window_places(windows, picks)
    values = windows[image, row, column]
    mask = windows_of(op, np.ones((1, *images.shape[1:3], 1), np.bool_))
    inside = np.broadcast_to(mask[0, row, column], values.shape)
    return Rows(_flat(values), _flat(inside))


def windows_of(op: Conv2D | DepthwiseConv2D, images: Array) -> Array:
    """Take the windows of a convolution: [images, rows, columns, channels, kh, kw]."""
    _, kh, kw, _ = op.filter.dims
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    return patches(images, (kh, kw), stride, op.padding, dilation)


def window_places(windows: Array, picks: Picks) -> tuple[Picks, Picks, Picks]:
    """Find image, row and column of sampled positions, of records with as many images each."""
    of_record, place = np.divmod(picks, windows.shape[1] * windows.shape[2])
    image = np.arange(len(picks))[:, None] * (len(windows) // len(picks)) + of_record
    row, column = np.divmod(place, windows.shape[2])
    return image, row, column


def _flat(windows: Array) -> Array:
    """Lay [records, positions, c, kh, kw] out as rows in the order of the weights."""
    return windows.transpose(0, 1, 3, 4, 2).reshape(windows.shape[0] * windows.shape[1], -1)
