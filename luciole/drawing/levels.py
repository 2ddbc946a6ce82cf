"""Describe learned levels: bases, the levels they span, how often each is used."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from luciole.drawing.blobs import Blobs
from luciole.drawing.text import rounded
from luciole.ir import Array, LucioleError, Op, Value
from luciole.ir.analysis import weights
from luciole.ir.analysis.weights import Weights, input_levels
from luciole.ir.analysis.widths import bits_of
from luciole.ir.minifloat import Minifloat
from luciole.ir.number_format import Float, LearnedLevels
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.lq_fully_connected import LQLayer

Json = dict[str, Any]
FEWEST_BINS, BINS = 20, 80
"""Bins of a channel's histogram: about twice the root of the number of weights."""

MOST_BITS = 8
"""Bits of weights that are drawn: there are as many levels as codes."""


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
    """Find the quantizer's name of a layer: its constants are named after it, also where its result
    took over the name of an activation that became part of it.
    """
    binary = op.weights_binary if isinstance(op, LQLayer | BCQFullyConnected) else None
    name, slash, _ = (op.name if binary is None else binary.name).rpartition("/weights_binary")
    return name if slash else op.name


def learned_weights(op: Op) -> Weights[LearnedLevels] | None:
    """Return the weights of a layer with learned levels, None for another one, a damaged one, or
    one of more bits than can be drawn.
    """
    bits = bits_of(op)
    if bits is None or bits.weights > MOST_BITS:
        return None
    try:
        op.result_shapes()  # the operator's own rules: operands that they take fit together
        return None if any(op.broken_rules()) else weights.learned_weights(op)
    except (LucioleError, ValueError):
        return None


def float_weights(op: Op) -> Array | None:
    """Return the weights [o, n] of a float layer, in the order in which learned ones are kept."""
    try:
        constant = weights.weights_of(op)
    except (LucioleError, ValueError):
        return None
    if constant is None or not isinstance(constant.format, Float | Minifloat):
        return None
    return constant.values()


@dataclass(frozen=True)
class Original:
    """The float operator that a layer took the place of, and what tensors of either network are
    divided by, channel by channel.
    """

    op: Op
    factors: Mapping[Value, Array]

    def weights_of(self, layer: Op) -> Array | None:
        """Return the float weights [o, n] as the layer has them: outputs divided by their factors,
        what reads divided inputs multiplied by theirs. None where there are none that fit.
        """
        weights = float_weights(self.op)
        if weights is None or not weights.size:
            return None
        (o, n), ends = weights.shape, (layer.results[0], self.op.results[0])
        outputs = self._factor(*ends)
        inputs = self._factor(layer.operands[0], self.op.operands[0])
        if o % len(outputs) or n % len(inputs):
            return None
        column = np.tile(outputs, o // len(outputs))[:, None]
        return np.asarray(weights / column * np.tile(inputs, n // len(inputs)))

    def _factor(self, value: Value | None, original: Value | None) -> Array:
        """Return the divisor of a tensor beyond that of the original: [channels], or [1]."""
        both = [self.factors.get(v) if v is not None else None for v in (value, original)]
        of, before = (np.ones(1) if f is None else f.astype(np.float64) for f in both)
        fit = len(of) == len(before) or 1 in (len(of), len(before))
        return of / before if fit else np.ones(1)


def levels_json(
    op: Op, original: Original | None, histograms: Mapping[str, InputHistogram], blobs: Blobs
) -> Json | None:
    """Return everything that the page draws of a layer with learned levels; None where they are
    damaged or not finite.
    """
    of_weights = blobs.once(_constants_of(op, original), lambda: _weights_json(op, original, blobs))
    if of_weights is None:
        return None
    facts: Json = {"weights": of_weights}
    inputs = input_levels(op)
    if inputs is not None and _is_finite(inputs):
        seen = histograms.get(op.name, histograms.get(layer_name(op)))
        facts["input"] = _input_json(inputs, seen)
    return facts


def _constants_of(op: Op, original: Original | None) -> Hashable:
    """Return a key that layers share whose weights are the same."""
    held = [(id(v.buffer), v.dtype, v.dims) for v in op.operands if v is not None and v.is_constant]
    common = "levels", type(op), *held, tuple(op.attributes().values())
    if original is None:
        return common
    ends = (*op.operands[:1], *op.results[:1])
    return *common, id(original.op), *(id(v) for v in ends if v in original.factors)


def _is_finite(levels: LearnedLevels) -> bool:
    return bool(np.isfinite(levels.basis).all() and np.isfinite(levels.offset).all())


def _weights_json(op: Op, replaced: Original | None, blobs: Blobs) -> Json | None:
    """Describe each channel: basis, levels in rising order with the code behind each, how many
    weights have it, and a histogram of the original weights; None where they are damaged or not
    finite.
    """
    learned = learned_weights(op)
    if learned is None or not _is_finite(learned.format):
        return None
    original = None if replaced is None else replaced.weights_of(op)
    format, shape = learned.format, learned.codes.shape
    facts: Json = {
        "channels": int(shape[0]),
        "per_channel": int(shape[1]),
        "bits": format.bits,
        "basis": blobs.add(format.basis.astype(np.float32)),
        "offsets": blobs.add(format.offset.astype(np.float32)),
        **_levels_of_weights(format, learned.codes, blobs),
        "values": blobs.later("f4", shape, lambda: learned.values().astype(np.float32)),
        "of": "dequantized",
    }
    if format.widths is not None and len(set(format.widths.tolist())) > 1:
        facts["row_bits"] = blobs.add(format.widths.astype(np.uint8))
    if original is not None and original.shape == shape:
        facts["of"] = "original"
        facts |= _against(original, learned.values(), format.levels[0], blobs)
    return facts


def _levels_of_weights(format: LearnedLevels, codes: Array, blobs: Blobs) -> Json:
    """Return each channel's levels, the code behind each, and how many weights have it."""
    values, order = format.levels
    ranks = format.ranks(codes)
    flat = ranks + values.shape[1] * np.arange(len(ranks))[:, None]
    counts = np.bincount(flat.reshape(-1), minlength=values.size).reshape(values.shape)
    return {
        "levels": blobs.add(values.astype(np.float32)),
        "codes": blobs.add(order.astype(np.uint8)),
        "counts": blobs.add(counts.astype(np.uint32)),
    }


def _values(op: Op) -> Array:
    """Return the weights once more: all their signs together take eight times the file's bytes."""
    learned = learned_weights(op)
    assert learned is not None  # else nobody could ask
    return learned.values().astype(np.float32)


def _against(original: Array, restored: Array, levels: Array, blobs: Blobs) -> Json:
    """Return the original weights' histograms [o, bins] between each channel's own ends, and
    errors.
    """
    low = np.minimum(original.min(1), levels[:, 0])
    high = np.maximum(original.max(1), levels[:, -1])
    margin = np.maximum((high - low) * 0.04, 1e-12)
    low, high = low - margin, high + margin
    counts = _histograms(original, low, high)
    first, last = reach(levels)
    outside = (original < first[:, None]) | (original > last[:, None])
    return {
        "histogram": blobs.add(counts.astype(np.uint32)),
        "ends": blobs.add(np.stack([low, high], 1).astype(np.float32)),
        "clipped": blobs.add(outside.mean(1).astype(np.float32)),
        "clipped_share": rounded(float(outside.mean())),
        "error": error_json(original, restored),
        "channel_mse": blobs.add(np.square(original - restored).mean(1).astype(np.float32)),
    }


def _histograms(numbers: Array, low: Array, high: Array) -> Array:
    """Count each row's numbers [o, n] between its own ends: [o, bins]."""
    rows, count = numbers.shape
    bins = int(np.clip(2 * count**0.5, FEWEST_BINS, BINS))
    place = ((numbers - low[:, None]) / (high - low)[:, None] * bins).astype(np.intp)
    flat = np.clip(place, 0, bins - 1) + bins * np.arange(rows)[:, None]
    return np.bincount(flat.reshape(-1), minlength=bins * rows).reshape(-1, bins)


def error_json(original: Array, restored: Array) -> Json:
    """Describe errors: mean squared error, signal-to-noise ratio in dB, cosine, peak error by the
    range's width.
    """
    difference = restored - original
    mse = float(np.square(difference).mean())
    signal = float(np.square(original).mean())
    lengths = float(np.linalg.norm(original) * np.linalg.norm(restored))
    span = float(np.ptp(original))
    return {
        "mse": rounded(mse),
        "snr_db": rounded(10 * float(np.log10(signal / mse))) if signal and mse else None,
        "cosine": rounded(float(np.vdot(original, restored)) / lengths) if lengths else None,
        "peak": rounded(float(np.abs(difference).max()) / span) if span else None,
    }


def reach(levels: Array) -> tuple[Array, Array]:
    """Return how far sorted levels [..., m] reach: half a step beyond the outermost ones. Numbers
    further out are clipped.
    """
    step = np.diff(levels, axis=-1)
    return levels[..., 0] - step[..., 0] / 2, levels[..., -1] + step[..., -1] / 2


def _input_json(inputs: LearnedLevels, histogram: InputHistogram | None) -> Json:
    values, order = inputs.levels
    facts: Json = {
        "bits": inputs.bits,
        "basis": [rounded(float(a)) for a in inputs.basis],
        "offset": rounded(float(inputs.offset)),
        "levels": [rounded(float(v)) for v in values],
        "codes": order.tolist(),
        "thresholds": [rounded(float(t)) for t in inputs.thresholds],
    }
    if histogram is not None:
        facts["histogram"] = {k: v for k, v in vars(histogram).items() if v is not None}
    return facts
