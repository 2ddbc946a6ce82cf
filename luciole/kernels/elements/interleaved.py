"""Normalize images of few channels: 16 pixels at once, whose channels lie between each other in as
many vectors as there are channels.
"""

from __future__ import annotations

import math
from functools import cache

from luciole.kernels import jit
from luciole.kernels.elements.norms import VECTOR, NormRecord
from luciole.kernels.jit import LANES, doubles, floats
from luciole.kernels.jit.vector import norms

ROOM = 4 * LANES
"""Doubles that an image needs for each of its channels: moments, then factors and summands."""

_PAIR = 2 * LANES
_BYTES = 8
_LINES = 8 * LANES * 2


class InterleavedRecord(NormRecord):
    """Images of ``channels`` and ``count`` pixels, with ``room`` for each one's moments."""

    room: int


@cache
def images(bounded: int) -> jit.Kernel:
    """Make the kernel that normalizes the channels of images, results between limits where they
    are ``bounded``; an image has 16 pixels at least.
    """

    @jit.inlined
    def write_block(r: InterleavedRecord, moved: int, block: int, room: int) -> None:
        x, y, row = r.x + moved + VECTOR * block, r.y + moved + VECTOR * block, VECTOR * r.channels
        line = norms.kept(room + _LINES * (r.channels + block))
        whole = r.count // LANES
        for k in range(whole):
            norms.write(y + k * row, x + k * row, LANES, line, r.low, r.high, bounded)
        left = min(r.count % LANES * r.channels - LANES * block, LANES)
        if left > 0:
            place = whole * row
            norms.write(y + place, x + place, left, line, r.low, r.high, bounded)

    @jit.kernel
    def norm_interleaved(r: InterleavedRecord) -> None:
        for image in range(r.begin, r.end):
            moved = image * r.count * 4 * r.channels
            room = r.room + image * _BYTES * ROOM * r.channels
            for block in range(r.channels):
                _add_block(r, r.x + moved + VECTOR * block, room + _LINES * block)
            for channel in range(r.channels):
                _join(r, r.x + moved, room, channel)
            for block in range(r.channels):
                write_block(r, moved, block, room)

    return norm_interleaved


@jit.inlined
def _add_block(r: InterleavedRecord, x: int, room: int) -> None:
    """Add up the moments of every 16th pixel's part of a vector."""
    pivot, moments, row = norms.loaded(x, LANES), norms.no_moments(), VECTOR * r.channels
    for k in range(r.count // LANES):
        moments = norms.plus(moments, pivot, x + k * row, LANES)
    norms.keep(room, moments)


@jit.inlined
def _join(r: InterleavedRecord, x: int, room: int, channel: int) -> None:
    """Join the moments of a channel's lanes around its first number, add those of the last pixels,
    and give all its lanes a factor and a summand.
    """
    numbers, kept, c, whole = floats(x), doubles(room), r.channels, r.count // LANES
    first, total, squares = 0.0 + numbers[channel], 0.0, 0.0  # in double precision
    for lane in range(channel, LANES * c, c):
        place, away = lane // LANES * _PAIR + lane % LANES, numbers[lane] - first
        part = kept[place]
        total += part + whole * away
        squares += kept[place + LANES] + away * (2 * part + whole * away)
    for place in range(LANES * c * whole + channel, c * r.count, c):
        away = numbers[place] - first
        total += away
        squares += away * away
    apart = total / r.count
    variance = squares / r.count - apart * apart
    if variance < 0:  # by rounding: NaN stays NaN
        variance = 0.0
    factor = floats(r.scale + channel * r.scale_step)[0] / math.sqrt(variance + r.epsilon)
    summand = floats(r.shift + channel * r.shift_step)[0] - (first + apart) * factor
    for lane in range(channel, LANES * c, c):
        place = (c + lane // LANES) * _PAIR + lane % LANES
        kept[place], kept[place + LANES] = factor, summand
