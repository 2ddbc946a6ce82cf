"""Integers with a scale for one layer's weights: rounded to the nearest, or so that what rounding
adds evens out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.blockwise import stored_scales
from luciole.ir.quantization import Affine
from luciole.lquantizer.formats.coded import Matrix
from luciole.lquantizer.formats.stored_levels import StoredLevels

_SHARES = np.linspace(0.3, 1.0, 71)
"""Shares of the largest weight that a scale may reach."""
_LEAST = 2.0**-20
"""The smallest peak of an output's weights, as a share of the layer's: its scale times the input's
is the bias's step, and a bias has 32 bits."""
_BIAS_STEP = 2.0**-16
"""The scale of weights that are all 0, as a share of the largest bias: inputs' scales of 2^-15 and
more leave it within 32 bits, and those of 1 and less change it by 2^-17 at the most."""

_MOST_BIAS = 2.0**30
"""The largest bias in steps, as TFLite's converter has it: sums have 32 bits."""

Scales = NDArray[np.float32]


@dataclass(frozen=True)
class Integers:
    """Learned integers: a row of codes for each output [o, n], scales [o] or [1], or of the blocks
    of each row [o, blocks], and bias [o]; the ``levels`` that the codes are of, where these are
    few.
    """

    codes: Array
    scales: Scales
    bias: Array
    levels: StoredLevels | None = None

    def values(self) -> Matrix:
        """Compute the weights that the codes stand for: [o, n]."""
        scales = self.scales.reshape(len(self.scales), -1)
        each = self.codes.shape[1] // scales.shape[1]
        return np.asarray(self.codes * np.repeat(scales, each, axis=1), np.float32)


def nearest_blocks(
    weights: Array, bias: Array, most: int, block: int, *, searched: bool
) -> Integers:
    """Round weights [o, n] as ``nearest`` does, with a scale for each block of a row."""
    rows = weights.reshape(-1, block)
    scales = stored_scales(weight_scales(rows, most, channels=True, searched=searched))
    codes = np.clip(np.rint(rows / scales[:, None]), -most, most).astype(np.int8)
    return Integers(codes.reshape(weights.shape), scales.reshape(len(weights), -1), bias)


def nearest(weights: Array, bias: Array, most: int, *, channels: bool, searched: bool) -> Integers:
    """Round weights [o, n] to integers from -most to most; scales reach the largest weight, or
    where they are ``searched``, have the least squared error.
    """
    idle = idle_scale(bias)
    scales = weight_scales(weights, most, channels=channels, searched=searched, idle=idle)
    codes = np.clip(np.rint(weights / scales[:, None]), -most, most)
    return Integers(codes.astype(np.int8), scales, bias)


def weights_as_given(weights: Array, bias: Array, affine: Affine, most: int) -> Integers:
    """Return the codes of weights [o, n] that were rounded before. Kernels read codes from -most to
    most, around 0: weights beyond are rounded again.
    """
    codes = np.rint(weights / affine.scale[:, None])  # one scale, or one of each output
    if np.abs(codes).max(initial=0) <= most:
        return Integers(codes.astype(np.int8), affine.scale, bias)
    return nearest(weights, bias, most, channels=False, searched=False)


def balanced(codes: Array, steps: Array, channels: int, most: int) -> Array:
    """Move codes [o, n] by one so that the rounding errors of the float weights in ``steps`` [o, n]
    sum up to less than half a step over each filter's taps of one input channel, and then over each
    output; n runs over taps, and over ``channels`` inside.

    Inputs behind a RELU have means above 0, and neighbours are alike, so that sums of errors are
    what reaches the output; no data are needed to say so (Guo et al. 2022, "SQuant: On-the-Fly
    Data-Free Quantization via Diagonal Hessian Approximation", sections 3.3 and 3.4).
    """
    if not codes.size:
        return codes
    shape = (len(codes), -1, channels)
    targets = steps.reshape(shape).swapaxes(1, 2)
    moved, error = _evened(codes.reshape(shape).swapaxes(1, 2), targets, most)
    total = error.sum((1, 2))
    places = (error * np.sign(total)[:, None, None]).argmax(-1)[..., None]  # one of each filter
    first, aims, own = (np.take_along_axis(a, places, -1)[..., 0] for a in (moved, targets, error))
    evened, _ = _evened(first, aims, most, total - own.sum(1))
    np.put_along_axis(moved, places, evened[..., None], -1)
    return np.asarray(moved.swapaxes(1, 2).reshape(codes.shape), codes.dtype)


def _evened(
    codes: Array, steps: Array, most: int, beside: Array | float = 0.0
) -> tuple[Array, Array]:
    """Move the codes [..., k] with the largest errors by one, as many as bring the sum of all
    errors, and of those ``beside`` them [...], below half a step; returns codes and errors.
    """
    error = codes - steps
    total = error.sum(-1) + beside
    sign, count = np.sign(total)[..., None], np.rint(np.abs(total))[..., None]
    gain = np.where(np.abs(codes - sign) <= most, error * sign, -np.inf)
    rank = np.argsort(np.argsort(-gain, axis=-1, kind="stable"), axis=-1)
    moved = codes - sign * ((rank < count) & np.isfinite(gain))
    return moved, moved - steps


def with_room_for_bias(learned: Integers, step: float) -> Integers:
    """Raise the scales of outputs whose weights are next to nothing beside their bias, so that the
    bias fits into 32 bits; its steps are those of the weights times the input's ``step``.
    """
    bias = np.abs(learned.bias.astype(np.float64))
    least = (bias if len(learned.scales) > 1 else bias.max(initial=0.0)) / (step * _MOST_BIAS)
    scales = np.maximum(learned.scales, np.asarray(least, np.float32))
    shares = (learned.scales / scales).astype(np.float64)
    levels = None if learned.levels is None else _shrunk(learned.levels, shares)
    codes = learned.codes * shares[:, None] if levels is None else levels.values()
    return Integers(np.rint(codes).astype(np.int8), scales, learned.bias, levels)


def _shrunk(levels: StoredLevels, shares: NDArray[np.float64]) -> StoredLevels:
    """Multiply the levels of each output by a share [o]."""
    if (shares == 1).all():
        return levels
    basis = np.rint(levels.basis * shares[:, None]).astype(np.int8)
    offsets = None if levels.offsets is None else np.rint(levels.offsets * shares).astype(np.int8)
    return StoredLevels(levels.codes, basis, offsets=offsets)


def idle_scale(bias: Array) -> float:
    """Choose the scale of weights that are all 0: it makes the steps of the bias, which is all that
    such a layer gives.
    """
    return float(np.abs(bias).max(initial=0.0)) * _BIAS_STEP or 1.0


def weight_scales(
    weights: Array, most: int, *, channels: bool, searched: bool, idle: float = 1.0
) -> Scales:
    """Choose scales for weights [o, n]: [o], or [1] unless each of the ``channels`` has its own;
    ``idle`` where all weights are 0.
    """
    if not weights.any():
        return np.full(len(weights) if channels else 1, idle, np.float32)
    rows = weights if channels else weights.reshape(1, -1)
    peaks = np.abs(rows).max(1).astype(np.float64)
    peaks = np.maximum(peaks, max(_LEAST * float(peaks.max()), float(np.finfo(np.float32).tiny)))
    best, error = peaks / most, np.full(len(rows), np.inf)
    for share in _SHARES if searched else ():
        scale = share * peaks[:, None] / most
        off = np.clip(np.rint(rows / scale), -most, most) * scale - rows
        squared_error = np.square(off).sum(1)
        best = np.where(squared_error < error, scale[:, 0], best)
        error = np.minimum(squared_error, error)
    return np.asarray(np.maximum(best, np.finfo(np.float32).tiny), np.float32)
