"""Compiled normalizations: rows of floats, or columns of them side by side, get their mean and
their variance, in double precision as the references.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import norms
from luciole.kernels.jit.vector.norms import Wide

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
def columns() -> jit.Kernel:
    """Make the kernel that normalizes the columns of images [count, channels]."""

    @jit.kernel
    def norm_columns(r: NormRecord) -> None:
        step = 4 * r.channels
        for piece in range(r.begin, r.end):
            image, block = piece // r.blocks, piece % r.blocks
            lanes, moved = r.channels - LANES * block, image * r.count * step + VECTOR * block
            x, y = r.x + moved, r.y + moved
            mean = norms.zeros()
            for row in range(r.count):
                mean = norms.plus_numbers(mean, x + row * step, lanes)
            mean = norms.mean(mean, r.count)
            total = norms.zeros()
            for row in range(r.count):
                total = norms.plus_squares(total, mean, x + row * step, lanes)
            root = norms.root(norms.mean(total, r.count), r.epsilon)
            scale = _by_lanes(r.scale, r.scale_step, LANES * block, lanes)
            shift = _by_lanes(r.shift, r.shift_step, LANES * block, lanes)
            for row in range(r.count):
                to, source = y + row * step, x + row * step
                norms.write_scaled(to, source, lanes, mean, root, scale, shift, r.low, r.high)

    return norm_columns


@cache
def rows() -> jit.Kernel:
    """Make the kernel that normalizes rows, each with the scale and the shift of its channel."""

    @jit.kernel
    def norm_rows(r: NormRecord) -> None:
        n = r.count
        for piece in range(r.begin, r.end):
            x, y, channel = r.x + 4 * n * piece, r.y + 4 * n * piece, piece % r.channels
            mean = norms.zeros()
            for first in range(0, n, LANES):
                mean = norms.plus_numbers(mean, x + 4 * first, n - first)
            mean = norms.mean(norms.summed(mean), n)
            root = _row_root(x, n, mean, r.epsilon)
            scale = norms.repeated(r.scale + channel * r.scale_step)
            shift = norms.repeated(r.shift + channel * r.shift_step)
            for first in range(0, n, LANES):
                to, source, lanes = y + 4 * first, x + 4 * first, n - first
                norms.write_scaled(to, source, lanes, mean, root, scale, shift, r.low, r.high)

    return norm_rows


@cache
def rows_by_root() -> jit.Kernel:
    """Make the kernel that divides rows by the root of their mean square, each element with a scale
    of its own.
    """

    @jit.kernel
    def norm_rows_by_root(r: NormRecord) -> None:
        n, none = r.count, norms.zeros()
        for piece in range(r.begin, r.end):
            x, y = r.x + 4 * n * piece, r.y + 4 * n * piece
            root = _row_root(x, n, none, r.epsilon)
            for first in range(0, n, LANES):
                to, source, lanes = y + 4 * first, x + 4 * first, n - first
                scale = _by_lanes(r.scale, r.scale_step, first, lanes)
                norms.write_scaled(to, source, lanes, none, root, scale, none, r.low, r.high)

    return norm_rows_by_root


@jit.inlined
def _row_root(x: int, n: int, mean: Wide, epsilon: jit.Single) -> Wide:
    """Compute the root of a row's mean square distance from a number."""
    total = norms.zeros()
    for first in range(0, n, LANES):
        total = norms.plus_squares(total, mean, x + 4 * first, n - first)
    return norms.root(norms.mean(norms.summed(total), n), epsilon)


@jit.inlined
def _by_lanes(numbers: int, step: int, first: int, lanes: int) -> Wide:
    """Load a number for each lane from the first on, or one for all where there is no other."""
    if step:
        return norms.loaded(numbers + step * first, lanes)
    return norms.repeated(numbers)
