"""What only learned levels have: bases, the levels they span, how often each is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Op, ShapeError, learned_levels
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected, clusters_of, matrix_rows
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected, LQLayer
from luciole.tools.view.blobs import Blobs
from luciole.tools.view.text import rounded

Json = dict[str, Any]
FEWEST_BINS, BINS = 20, 80
"""Bins of a channel's histogram: about twice the root of the number of weights."""


@dataclass(frozen=True)
class Learned:
    """A layer's weights: bases [o, k], offsets [o], and each weight's signs [o, k, n]; ``bits`` of
    a row may be fewer than k where rows have widths of their own.
    """

    basis: NDArray[np.float64]
    offsets: NDArray[np.float64]
    signs: NDArray[np.bool_]
    bits: NDArray[np.intp]

    def numbers(self) -> NDArray[np.intp]:
        """Each weight's code number [o, n]."""
        planes = (self.signs[:, k].astype(np.intp) << k for k in range(self.basis.shape[1]))
        return np.asarray(sum(planes))

    def values(self) -> NDArray[np.float64]:
        """The weights [o, n]."""
        signs = learned_levels.sign_codes(self.basis.shape[1])
        behind = self.basis @ signs.T + self.offsets[:, None]
        return np.take_along_axis(behind, self.numbers(), axis=1)


@dataclass(frozen=True)
class InputHistogram:
    """How often a layer's input was where: ``counts`` between ``low`` and ``high``, and outside."""

    low: float
    high: float
    counts: list[int]
    source: str
    below: int = 0
    above: int = 0
    level_counts: list[int] | None = None
    clipped: float | None = None


def layer_name(op: Op) -> str:
    """What the quantizer called a layer: its constants are named after it, also where its result
    took over the name of an activation that became part of it.
    """
    binary = op.weights_binary if isinstance(op, LQLayer | BCQFullyConnected) else None
    name, slash, _ = (op.name if binary is None else binary.name).rpartition("/weights_binary")
    return name if slash else op.name


def learned_weights(op: Op) -> Learned | None:
    """The weights of a layer with learned levels, None for another one or a damaged one."""
    try:
        if isinstance(op, LQFullyConnected | LQConv2D):
            return _of_levels(op)
        return _of_planes(op) if isinstance(op, BCQFullyConnected) else None
    except (ShapeError, ValueError, IndexError):
        return None


def _of_levels(op: LQFullyConnected | LQConv2D) -> Learned | None:
    scales, words = op.weights_scales.data, op.weights_binary.data
    if scales is None or words is None:
        return None
    count = op.hidden_size if isinstance(op, LQFullyConnected) else op.input_channels
    if words.shape[-1] != -(-count // learned_levels.WORD):
        return None
    signs = learned_levels.unpack(words, count).reshape(*scales.shape, -1)
    given = None if op.weights_offsets is None else op.weights_offsets.data
    offsets = np.zeros(len(scales)) if given is None else given.astype(np.float64)
    bits = np.full(len(scales), scales.shape[1])
    return Learned(scales.astype(np.float64), offsets, signs, bits)


def _of_planes(op: BCQFullyConnected) -> Learned | None:
    found = [v.data for v in (op.weights_scales, op.weights_binary, op.weights_clusters)]
    scales, words, table = found
    if scales is None or words is None or table is None:
        return None
    clusters = clusters_of(table, len(words))
    rows = matrix_rows(clusters)
    bits = np.concatenate([np.full(c.size, c.bits) for c in clusters])
    order = np.argsort(rows, kind="stable")
    plane = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    basis = np.zeros((len(bits), bits.max()))
    signs = np.zeros((len(bits), bits.max(), op.weights_hidden_size), np.bool_)
    basis[rows[order], plane] = scales[order]
    signs[rows[order], plane] = learned_levels.unpack(words, op.weights_hidden_size)[order]
    return Learned(basis, np.zeros(len(bits)), signs, bits)


def float_weights(op: Op | None) -> Array | None:
    """The weights [o, n] of a float layer, in the order in which learned ones are kept."""
    if not isinstance(op, FullyConnected | Conv2D):
        return None
    weights = op.weights if isinstance(op, FullyConnected) else op.filter
    data = weights.data if weights.is_constant else None
    if data is None or data.dtype.kind != "f" or data.ndim < 2:
        return None
    return data.reshape(len(data), -1)


def levels_json(
    op: Op, original: Op | None, histograms: Mapping[str, InputHistogram], blobs: Blobs
) -> Json | None:
    """Everything that the page draws of a layer with learned levels; None where they are damaged or
    not finite.
    """
    learned = learned_weights(op)
    if learned is None or not np.isfinite([*learned.basis.flat, *learned.offsets]).all():
        return None
    facts: Json = {"weights": _weights_json(learned, float_weights(original), blobs)}
    if isinstance(op, LQLayer) and np.isfinite(input_levels(op)[0]).all():
        facts["input"] = _input_json(op, histograms.get(op.name))
    return facts


def _weights_json(learned: Learned, original: Array | None, blobs: Blobs) -> Json:
    """Per channel: basis, levels in rising order with the code behind each, how many weights have
    it, and a histogram of the original weights.
    """
    values, order = learned_levels.levels(learned.basis, learned.offsets)
    rank = np.argsort(order, axis=1)
    numbers = np.take_along_axis(rank, learned.numbers(), axis=1)
    many = values.shape[1]
    flat = numbers + many * np.arange(len(numbers))[:, None]
    counts = np.bincount(flat.reshape(-1), minlength=values.size).reshape(values.shape)
    facts: Json = {
        "channels": len(values),
        "per_channel": int(numbers.shape[1]),
        "bits": int(learned.basis.shape[1]),
        "basis": blobs.add(learned.basis.astype(np.float32)),
        "offsets": blobs.add(learned.offsets.astype(np.float32)),
        "levels": blobs.add(values.astype(np.float32)),
        "codes": blobs.add(order.astype(np.uint8)),
        "counts": blobs.add(counts.astype(np.uint32)),
        "values": blobs.later("f4", numbers.shape, lambda: learned.values().astype(np.float32)),
        "of": "dequantized",
    }
    if len(set(learned.bits.tolist())) > 1:
        facts["row_bits"] = blobs.add(learned.bits.astype(np.uint8))
    if original is not None and original.shape == learned.signs.shape[::2]:
        facts["of"] = "original"
        facts |= _against(original.astype(np.float64), learned.values(), values, blobs)
    return facts


def _against(original: Array, found: Array, levels: Array, blobs: Blobs) -> Json:
    """The original weights' histograms [o, bins] between each channel's own ends, and errors."""
    low = np.minimum(original.min(1), levels[:, 0])
    high = np.maximum(original.max(1), levels[:, -1])
    margin = np.maximum((high - low) * 0.04, 1e-12)
    low, high = low - margin, high + margin
    bins = int(np.clip(2 * original.shape[1] ** 0.5, FEWEST_BINS, BINS))
    place = ((original - low[:, None]) / (high - low)[:, None] * bins).astype(np.intp)
    flat = np.clip(place, 0, bins - 1) + bins * np.arange(len(original))[:, None]
    counts = np.bincount(flat.reshape(-1), minlength=bins * len(original)).reshape(-1, bins)
    first, last = reach(levels)
    outside = (original < first[:, None]) | (original > last[:, None])
    return {
        "histogram": blobs.add(counts.astype(np.uint32)),
        "ends": blobs.add(np.stack([low, high], 1).astype(np.float32)),
        "clipped": blobs.add(outside.mean(1).astype(np.float32)),
        "clipped_share": rounded(float(outside.mean())),
        "error": error_json(original, found),
        "channel_mse": blobs.add(np.square(original - found).mean(1).astype(np.float32)),
    }


def error_json(wanted: Array, found: Array) -> Json:
    """Mean squared error, signal-to-noise ratio in dB, cosine, peak error by the range's width."""
    difference = found - wanted
    mse = float(np.square(difference).mean())
    signal = float(np.square(wanted).mean())
    lengths = float(np.linalg.norm(wanted) * np.linalg.norm(found))
    span = float(np.ptp(wanted))
    return {
        "mse": rounded(mse),
        "snr_db": rounded(10 * float(np.log10(signal / mse))) if signal and mse else None,
        "cosine": rounded(float(np.vdot(wanted, found)) / lengths) if lengths else None,
        "peak": rounded(float(np.abs(difference).max()) / span) if span else None,
    }


def reach(levels: Array) -> tuple[Array, Array]:
    """How far sorted levels [..., m] reach: half a step beyond the outermost ones. What is further
    out is clipped.
    """
    step = np.diff(levels, axis=-1)
    return levels[..., 0] - step[..., 0] / 2, levels[..., -1] + step[..., -1] / 2


def _input_json(op: LQLayer, histogram: InputHistogram | None) -> Json:
    values, order, between = input_levels(op)
    basis = op.input_scales.data
    facts: Json = {
        "bits": 0 if basis is None else len(basis),
        "basis": [] if basis is None else [rounded(float(a)) for a in basis],
        "offset": rounded(_offset(op)),
        "levels": [rounded(float(v)) for v in values],
        "codes": order.tolist(),
        "thresholds": [rounded(float(t)) for t in between],
    }
    if histogram is not None:
        facts["histogram"] = {k: v for k, v in vars(histogram).items() if v is not None}
    return facts


def input_levels(op: LQLayer) -> tuple[Array, Array, NDArray[np.float32]]:
    """The levels of a layer's input in rising order, the code behind each, and the thresholds."""
    basis = op.input_scales.data
    values, order = learned_levels.levels(np.zeros(1) if basis is None else basis, _offset(op))
    return values, order, learned_levels.thresholds(values)


def _offset(op: LQLayer) -> float:
    return op.input_offset if isinstance(op, LQFullyConnected | LQConv2D) else 0.0
