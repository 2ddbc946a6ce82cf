"""Sums and maxima of many vectors, as kernels compute them.

Four vectors are combined side by side, and in chunks (blocked summation): so additions need not
wait for each other, and rounding errors stay small. ``start`` changes nothing that it is combined
with.
"""

from __future__ import annotations

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Single
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.elementwise import Chosen, Vector

SHORT = 512
"""Floats of a row up to which beginning and ending four sums takes longer than adding."""

CHUNK = 256
"""Vectors of which one sum is made before it is added to the others."""


@jit.inlined
def load(x: int, lanes: int, other: Single) -> Vector:
    """Load the first lanes of a vector, ``other`` in the rest."""
    if lanes == LANES:
        return elementwise.load_vector(x)
    return elementwise.load_first(x, lanes, other)


@jit.inlined
def store(vector: Vector, y: int, lanes: int) -> None:
    """Write the first lanes of a vector."""
    if lanes == LANES:
        elementwise.store_vector(vector, y)
    else:
        elementwise.store_first(vector, y, lanes)


@jit.inlined
def column(
    function: Chosen, x: int, distance: int, count: int, lanes: int, start: Single
) -> Vector:
    """Combine ``count`` vectors, ``distance`` bytes from one to the next, lane by lane.

    What is loaded comes first in every combination, so that MAXIMUM leaves out NaN.
    """
    total = elementwise.spread(start)
    for first in range(0, count, CHUNK):
        chunk = min(count - first, CHUNK)
        a = b = c = d = elementwise.spread(start)
        for _ in range(chunk // 4):
            a = elementwise.combined(function, load(x, lanes, start), a)
            b = elementwise.combined(function, load(x + distance, lanes, start), b)
            c = elementwise.combined(function, load(x + 2 * distance, lanes, start), c)
            d = elementwise.combined(function, load(x + 3 * distance, lanes, start), d)
            x += 4 * distance
        for _ in range(chunk % 4):
            a = elementwise.combined(function, load(x, lanes, start), a)
            x += distance
        a, c = elementwise.combined(function, b, a), elementwise.combined(function, d, c)
        total = elementwise.combined(function, elementwise.combined(function, c, a), total)
    return total


@jit.inlined
def row(function: Chosen, x: int, count: int, start: Single) -> Vector:
    """Combine ``count`` floats side by side into a vector."""
    if count > SHORT:
        whole = column(function, x, 4 * LANES, count // LANES, LANES, start)
    else:
        whole = _pairs(function, x, count // LANES, start)
    last = elementwise.load_first(x + count // LANES * 4 * LANES, count % LANES, start)
    return elementwise.combined(function, last, whole)


@jit.inlined
def _pairs(function: Chosen, x: int, count: int, start: Single) -> Vector:
    """Combine ``count`` vectors, two side by side."""
    a = b = elementwise.spread(start)
    for _ in range(count >> 1):
        a = elementwise.combined(function, elementwise.load_vector(x), a)
        b = elementwise.combined(function, elementwise.load_vector(x + 4 * LANES), b)
        x += 8 * LANES
    if count & 1:
        a = elementwise.combined(function, elementwise.load_vector(x), a)
    return elementwise.combined(function, b, a)
