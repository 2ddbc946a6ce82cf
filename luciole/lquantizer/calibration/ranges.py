"""Choose which numbers a tensor's integers reach, from what it held.

Every rule gives the least and the largest number; what lies beyond is clipped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import TensorType
from luciole.ir.dtypes import integer_range
from luciole.lquantizer.calibration.least import Floats, least_lossy
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import Range, of_range, of_ranges

Rule = Callable[[Seen, float, TensorType], Range]
Chosen = Callable[[Seen, TensorType], Range]
"""A rule with its number."""
Losses = Callable[[Floats, Floats, Floats, TensorType], Floats]
"""The losses of ranges [n, 2] over the middles of bins and the numbers of elements in them."""


def min_max(seen: Seen, _: float, __: TensorType) -> Range:
    """Take the extremes."""
    return seen.low, seen.high


def percentile(seen: Seen, share: float, _: TensorType) -> Range:
    """Choose the range that ``share`` percent of all elements are within, on each side."""
    middles, counts = seen.histogram()
    order = np.argsort(middles)
    below = np.cumsum(counts[order]) / counts.sum()
    places = np.searchsorted(below, [1 - share / 100, share / 100])
    low, high = middles[order][np.minimum(places, len(order) - 1)].tolist()
    return max(low, seen.low), min(high, seen.high)


def record_percentile(seen: Seen, share: float, _: TensorType) -> Range:
    """Take the percentile of the records' extremes, as Samsung ONE's record-minmax does."""
    low, high = np.percentile(seen.lows, 100 - share), np.percentile(seen.highs, share)
    return float(low), float(high)


def moving_average(seen: Seen, momentum: float, _: TensorType) -> Range:
    """Average the records' extremes, each new one by 1 - ``momentum`` (Jacob et al. 2018, section
    3.1). One that stands for several records counts as often.
    """
    low, high = seen.lows[0], seen.highs[0]
    momentum = momentum**seen.apart
    for least, most in zip(seen.lows[1:], seen.highs[1:], strict=True):
        low = momentum * low + (1 - momentum) * least
        high = momentum * high + (1 - momentum) * most
    return low, high


def mse(seen: Seen, _: float, dtype: TensorType) -> Range:
    """Take the range of the least mean squared error, among shares of both extremes; of what
    saturating readers give, where there are no others.
    """
    return seen.judged(dtype) or _least(seen, dtype, _errors)


def entropy(seen: Seen, _: float, dtype: TensorType) -> Range:
    """Take the range that loses the least information: of the least Kullback-Leibler divergence
    between what the tensor held, cut off at the range, and what integers tell of it (Migacz 2017,
    "8-bit Inference with TensorRT", GTC, slides 26 to 38; here for each side by itself). Zeros do
    not count: they stay what they are. 16 bits tell all bins apart: they reach the extremes.
    """
    if dtype == TensorType.INT16:
        return min_max(seen, 0.0, dtype)
    return _least(seen, dtype, _divergences)


def _least(seen: Seen, dtype: TensorType, losses: Losses) -> Range:
    middles, counts = seen.histogram()
    extremes = seen.low, seen.high
    return least_lossy(extremes, lambda limits: losses(limits, middles, counts, dtype))


def _errors(limits: Floats, middles: Floats, counts: Floats, dtype: TensorType) -> Floats:
    affine = of_ranges(limits, dtype)
    errors = affine.decode(affine.encode(np.broadcast_to(middles, (len(limits), len(middles)))))
    errors -= middles
    np.square(errors, out=errors)
    return np.array([row @ counts for row in errors])  # one product may add in another order


def _divergences(limits: Floats, middles: Floats, counts: Floats, dtype: TensorType) -> Floats:
    return np.array([_divergence(one, middles, counts, dtype) for one in limits])


def _divergence(limits: Floats, middles: Floats, counts: Floats, dtype: TensorType) -> float:
    """Compute sum p log(p / q): p are the bins within the limits, what lies beyond added to the
    outermost, q those that share a code evened out, and empty ones left empty.
    """
    held = (middles != 0) & (counts > 0)
    middles, counts = middles[held], counts[held]
    inside = (middles >= limits[0]) & (middles <= limits[1])
    if not inside.any():
        return np.inf
    within = middles[inside]
    places = np.searchsorted(within, np.clip(middles, within[0], within[-1]))
    p = np.bincount(places, counts, len(within))
    affine = of_range((float(limits[0]), float(limits[1])), dtype)
    _, codes = np.unique(affine.encode(within), return_inverse=True)
    levels = np.bincount(codes, counts[inside]) / np.bincount(codes)
    q = levels[codes]
    p, q = p / p.sum(), q / q.sum()
    return float(np.sum(p * np.log(p / q)))


RULES: dict[str, tuple[Rule, float, Range | None]] = {
    "mse": (mse, 0.0, None),
    "min_max": (min_max, 0.0, None),
    "percentile": (percentile, 99.99, (50.0, 100.0)),
    "moving_average": (moving_average, 0.99, (0.0, 1.0)),
    "record_percentile": (record_percentile, 99.0, (50.0, 100.0)),
    "entropy": (entropy, 0.0, None),
}
"""Rules by name, with the default of their number, and the possible numbers."""


def symmetric(rule: Chosen) -> Chosen:
    """Widen the rule's ranges on both sides of 0 to reach as far on the one as on the other: the
    code in the middle is 0, and the lowest one, which has no opposite, is beyond.
    """

    def both(seen: Seen, dtype: TensorType) -> Range:
        low, high = rule(seen, dtype)
        least, most = integer_range(dtype) or (0, 0)
        far, middle = max(-low, high), (least + most + 1) // 2
        return (far * (least - middle) / (most - middle), far) if low < 0 < high else (low, high)

    return both


def rule_of(text: str) -> Chosen:
    """Read a rule: its name, or its name, a colon and its number (``percentile:99.9``).

    Raises QuantizeError for another name, and for a number that the rule does not take.
    """
    name, _, number = text.partition(":")
    if name not in RULES:
        raise QuantizeError(f"ranges is {text!r}: {', '.join(RULES)} are possible")
    rule, default, possible = RULES[name]
    parameter = _number(text, number, possible) if number else default

    def chosen(seen: Seen, dtype: TensorType) -> Range:
        low, high = rule(seen, parameter, dtype)
        return min(low, seen.floor(dtype)), high

    return chosen


def _number(text: str, number: str, possible: Range | None) -> float:
    """Read the number of a rule. Raises QuantizeError for what it cannot be."""
    if possible is None:
        raise QuantizeError(f"ranges is {text!r}: this rule takes no number")
    try:
        parameter = float(number)
    except ValueError:
        raise QuantizeError(f"ranges is {text!r}: {number!r} is no number") from None
    low, high = possible
    if not low <= parameter <= high:
        raise QuantizeError(f"ranges is {text!r}: {low:g} to {high:g} are possible")
    return parameter
