"""Compiled normalizations: rows of floats, or columns of them side by side, get their mean and
their variance, in double precision as the references.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import norms
from luciole.kernels.jit.vector.norms import Pair, Wide

VECTOR = 4 * LANES
"""Bytes of a vector of floats."""


class NormRecord(Shared):
    """Pieces of a result y and an operand x: rows, or 16 columns of an image. A piece has ``count``
    rows or elements, of ``channels`` in an image or a batch; ``blocks`` are the pieces of an image.

    From channel to channel addresses of scales and shifts go on by their steps, 4 or 0 bytes.
    """

    y: int
    x: int
    scale: int
    shift: int
    count: int
    channels: int
    blocks: int
    scale_step: int
    shift_step: int
    epsilon: float
    low: float
    high: float


@cache
def columns(bounded: int) -> jit.Kernel:
    """Make the kernel that normalizes the columns of images [count, channels], results between
    limits where they are ``bounded``.
    """

    @jit.inlined
    def column(r: NormRecord, moved: int, channel: int, lanes: int) -> None:
        x, y, step = r.x + moved, r.y + moved, 4 * r.channels
        pivot, moments = norms.loaded(x, lanes), norms.no_moments()
        for row in range(r.count):
            moments = norms.plus(moments, pivot, x + row * step, lanes)
        standard = norms.by_lanes(moments, pivot, r.count, r.epsilon)
        scale = _by_lanes(r.scale, r.scale_step, channel, lanes)
        line = norms.line(standard, scale, _by_lanes(r.shift, r.shift_step, channel, lanes))
        for row in range(r.count):
            place = row * step
            norms.write(y + place, x + place, lanes, line, r.low, r.high, bounded)

    @jit.kernel
    def norm_columns(r: NormRecord) -> None:
        for piece in range(r.begin, r.end):
            image, block = piece // r.blocks, piece % r.blocks
            lanes = r.channels - LANES * block
            moved = image * r.count * 4 * r.channels + VECTOR * block
            if lanes >= LANES:  # known to be all, so that no lane is asked for
                column(r, moved, LANES * block, LANES)
            else:
                column(r, moved, LANES * block, lanes)

    return norm_columns


@cache
def rows(bounded: int) -> jit.Kernel:
    """Make the kernel that normalizes rows, each with the scale and the shift of its channel,
    results between limits where they are ``bounded``.
    """

    @jit.kernel
    def norm_rows(r: NormRecord) -> None:
        n, whole = r.count, r.count - r.count % LANES
        for piece in range(r.begin, r.end):
            x, y, channel = r.x + 4 * n * piece, r.y + 4 * n * piece, piece % r.channels
            pivot = norms.repeated(x)
            standard = norms.across(_row(x, n, pivot), pivot, n, r.epsilon)
            scale = norms.repeated(r.scale + channel * r.scale_step)
            line = norms.line(standard, scale, norms.repeated(r.shift + channel * r.shift_step))
            for first in range(0, 4 * whole, VECTOR):
                norms.write(y + first, x + first, LANES, line, r.low, r.high, bounded)
            if whole < n:
                to, source = y + 4 * whole, x + 4 * whole
                norms.write(to, source, n - whole, line, r.low, r.high, bounded)

    return norm_rows


@cache
def rows_by_root(each: int, narrow: int) -> jit.Kernel:
    """Make the kernel that divides rows by the root of their mean square, ``each`` element with a
    scale of its own, or all with one; ``narrow`` where no inverse root is beyond floats.
    """

    @jit.inlined
    def product(r: NormRecord, factor: Wide, row: int, place: int, lanes: int) -> None:
        y, x = r.y + row + place, r.x + row + place
        norms.write_product(y, x, lanes, factor, r.scale, place, each, narrow)

    @jit.kernel
    def norm_rows_by_root(r: NormRecord) -> None:
        n, whole = r.count, r.count - r.count % LANES
        for piece in range(r.begin, r.end):
            row = 4 * n * piece
            factor = norms.around_zero(_row(r.x + row, n, norms.zeros()), n, r.epsilon)
            for place in range(0, 4 * whole, VECTOR):
                product(r, factor, row, place, LANES)
            if whole < n:
                product(r, factor, row, 4 * whole, n - whole)

    return norm_rows_by_root


@jit.inlined
def _row(x: int, n: int, pivot: Wide) -> Pair:
    """Sum up the moments of a row."""
    moments, others = norms.no_moments(), norms.no_moments()
    pairs = n // (2 * LANES)
    for pair in range(pairs):  # two sums do not wait for each other
        place = x + 2 * VECTOR * pair
        moments = norms.plus(moments, pivot, place, LANES)
        others = norms.plus(others, pivot, place + VECTOR, LANES)
    for first in range(2 * LANES * pairs, n, LANES):
        moments = norms.plus(moments, pivot, x + 4 * first, n - first)
    return norms.joined(moments, others)


@jit.inlined
def _by_lanes(numbers: int, step: int, first: int, lanes: int) -> Wide:
    """Load a number for each lane from the first on, or one for all where there is no other."""
    if step:
        return norms.loaded(numbers + step * first, lanes)
    return norms.repeated(numbers)
