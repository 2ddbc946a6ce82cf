"""Boxes of least y, least x, largest y and largest x in kernels: decoded, and those dropped that
overlap better ones.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from luciole.kernels import jit
from luciole.kernels.formulas.elementwise import Binary
from luciole.kernels.jit import LANES, Single, floats, longs
from luciole.kernels.jit.vector import elementwise

MAXIMUM = int(Binary.MAXIMUM)

BOX = 16
"""Bytes of a box."""

Scales: TypeAlias = tuple[float, float, float, float]
"""By which encodings are divided: of y, x, height and width."""


@jit.inlined
def decode_box(to: int, code: int, anchor: int, scales: Scales) -> None:
    """Decode a box from center y, center x, height and width, relative to an anchor; in double
    precision on the way.
    """
    box, relative, origin = floats(to), floats(code), floats(anchor)
    for axis in range(2):
        size = np.float64(origin[2 + axis])
        center = np.float32(np.float64(relative[axis]) / scales[axis] * size + origin[axis])
        half = np.float32(0.5 * math.exp(np.float64(relative[2 + axis]) / scales[2 + axis]) * size)
        box[axis], box[2 + axis] = center - half, center + half


@jit.inlined
def largest(x: int, count: int) -> Single:
    """Return the largest of floats, minus infinity where none is a number."""
    maximum, least = elementwise.function(MAXIMUM), np.float32(-np.inf)
    maxima = elementwise.spread(least)
    for first in range(0, count - LANES + 1, LANES):
        maxima = elementwise.combined(maximum, elementwise.load_vector(x + 4 * first), maxima)
    rest = count % LANES
    if rest:
        last = elementwise.load_first(x + 4 * (count - rest), rest, least)
        maxima = elementwise.combined(maximum, last, maxima)
    return elementwise.folded(maximum, maxima)


@jit.inlined
def best_of(places: int, count: int, scores: int, step: int) -> int:
    """Return the first of some places whose score, ``step`` bytes apart, is the largest."""
    listed = longs(places)
    best: int = listed[0]
    most = floats(scores + step * best)[0]
    for k in range(1, count):
        score = floats(scores + step * listed[k])[0]
        if score > most:
            best, most = listed[k], score
    return best


@jit.inlined
def without(places: int, count: int, boxes: int, taken: int, threshold: Single) -> int:
    """Drop a place, and those whose boxes have more than a share of the union in common with its
    box; the number of those that are left.
    """
    listed, kept = longs(places), 0
    for k in range(count):
        other = listed[k]
        if other != taken and not overlaps(boxes + BOX * taken, boxes + BOX * other, threshold):
            listed[kept] = other
            kept += 1
    return kept


@jit.inlined
def overlaps(first: int, second: int, threshold: Single) -> bool:
    """Return whether two boxes that are not empty have more than a share of the union in common."""
    a, b, nothing = floats(first), floats(second), np.float32(0)
    area, other = _area(first), _area(second)
    height = max(min(a[2], b[2]) - max(a[0], b[0]), nothing)
    width = max(min(a[3], b[3]) - max(a[1], b[1]), nothing)
    common = height * width
    share = common / (area + other - common)
    return bool(area > nothing and other > nothing and share > threshold)


@jit.inlined
def _area(box: int) -> Single:
    corners = floats(box)
    area: Single = (corners[2] - corners[0]) * (corners[3] - corners[1])
    return area
