"""Compiled kernels of images each of whose pixels is a mean of four others, 16 channels at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from typing import TypeAlias

import numpy as np

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, among, reach, turns
from luciole.kernels.elements import strided
from luciole.kernels.formulas.elementwise import Binary, Unary
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, Shared, reader
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.elementwise import Vector
from luciole.kernels.jit.vector.neighbours import mix_signed, mix_unsigned

SCALE, ADD = int(Unary.SCALE), int(Binary.ADD)
INT16 = int(Kind.INT16)


class Number(IntEnum):
    """Numbers that are mixed: by floats, or by integers of ``FRACTION_BITS``."""

    FLOAT32 = 0
    UINT8 = 1
    """Floats on the way, halves rounded up."""
    INT8 = 2
    INT16 = 3


FLOATS, UNSIGNED, SIGNED = int(Number.FLOAT32), int(Number.UINT8), int(Number.INT8)

THREE, FOUR = 3, 4
"""Channels of a picture in colours, and the bytes that are read of a pixel then."""

FRACTION_BITS = 10
"""Of integer shares."""

BITS = 2 * FRACTION_BITS
HALF = 1 << (BITS - 1)


class RealPlace(Record):
    """How many bytes the neighbours of a row or column lie behind the first, and their shares."""

    lower: int
    upper: int
    near: float
    far: float


class WholePlace(Record):
    """A ``RealPlace`` whose shares are integers."""

    lower: int
    upper: int
    near: int
    far: int


class MixRecord(Shared):
    """Rows of all images of a result z and an operand x, and the places of rows and columns."""

    z: int
    x: int
    height: int
    width: int
    channels: int
    pixel: int
    """Bytes of one."""
    image: int
    """Bytes of one of the operand."""
    last: int
    """How far its last row lies behind the beginning."""
    rows: int
    columns: int


_real_at, _whole_at = reader(RealPlace), reader(WholePlace)

Corners: TypeAlias = tuple[int, int, int, int]
"""Where bytes are written, the upper and the lower left neighbour, and how far to their right the
others are.
"""


@cache
def kernel(number: int, lanes: int) -> jit.Kernel:
    """Make the kernel for a ``Number`` and ``lanes`` channels at a time; 0 of floats are 16, or
    less where there are no more.
    """

    @jit.kernel
    def mix_pixels(r: MixRecord) -> None:
        for row in range(r.begin, r.end):
            x, z = r.x + row // r.height * r.image, r.z + row * r.width * r.pixel
            if number == FLOATS:
                _row_by_floats(r, lanes == 0, z, x, row % r.height)
            elif number in (UNSIGNED, SIGNED):
                _row_of_bytes(r, number, lanes, z, x, row % r.height)
            else:
                _row_by_long_integers(r, z, x, row % r.height)

    return mix_pixels


@jit.inlined
def _row_by_floats(r: MixRecord, few: bool, z: int, x: int, row: int) -> None:
    down, columns = _real_at(r.rows, row), r.columns
    width, channels, pixel = r.width, r.channels, r.pixel
    above, below, near, far = x + down.lower, x + down.upper, down.near, down.far
    for column in range(width):
        across = _real_at(columns, column)
        left, right, this, next_ = across.lower, across.upper, across.near, across.far
        for first in range(0, LANES if few else channels, LANES):
            count = channels if few else min(channels - first, LANES)
            at = first * 4
            a, b = _read(few, above + left + at, count), _read(few, below + left + at, count)
            c, d = _read(few, above + right + at, count), _read(few, below + right + at, count)
            sum_ = _plus(_times(a, near, this), _times(b, far, this))
            sum_ = _plus(sum_, _times(c, near, next_))
            sum_ = _plus(sum_, _times(d, far, next_))
            _write(few, sum_, z + at, count)
        z += pixel


@jit.inlined
def _read(few: bool, address: int, count: int) -> Vector:
    if not few and count == LANES:
        return elementwise.load_vector(address)
    return elementwise.load_first(address, count, np.float32(0))


@jit.inlined
def _write(few: bool, x: Vector, address: int, count: int) -> None:
    if not few and count == LANES:
        elementwise.store_vector(x, address)
    else:
        elementwise.store_first(x, address, count)


@jit.inlined
def _times(x: Vector, first: float, second: float) -> Vector:
    """Multiply by two shares, one after the other."""
    scale = elementwise.function(SCALE)
    return elementwise.mapped(scale, elementwise.mapped(scale, x, first, 0), second, 0)


@jit.inlined
def _plus(x: Vector, y: Vector) -> Vector:
    return elementwise.combined(elementwise.function(ADD), x, y)


@jit.inlined
def _row_of_bytes(r: MixRecord, number: int, lanes: int, z: int, x: int, row: int) -> None:
    """Mix bytes; the last channels of a pixel may be computed twice. Of three channels four bytes
    are read where another row lies behind those of the operand.
    """
    if lanes == THREE and x + _whole_at(r.rows, row).upper < r.x + r.last:
        _mixed_row(r, number, lanes, FOUR, z, x, row)
    else:
        _mixed_row(r, number, lanes, lanes, z, x, row)


@jit.inlined
def _mixed_row(r: MixRecord, number: int, lanes: int, read: int, z: int, x: int, row: int) -> None:
    if number == SIGNED:
        _row_of_signed(r, lanes, read, z, x, row)
    else:
        _row_of_unsigned(r, lanes, read, z, x, row)


@jit.inlined
def _signed(
    to: Corners, rows: tuple[int, int], columns: tuple[int, int], lanes: int, read: int
) -> None:
    (z, upper, lower, right), both = to, rows[1] << 16 | rows[0]
    mix_signed(z, upper, lower, right, both, columns[0], columns[1], BITS, lanes, read)


@jit.inlined
def _unsigned(
    to: Corners, rows: tuple[float, float], columns: tuple[float, float], lanes: int, read: int
) -> None:
    z, upper, lower, right = to
    mix_unsigned(z, upper, lower, right, rows[0], rows[1], columns[0], columns[1], lanes, read)


@jit.inlined
def _whole_place(places: int, number: int) -> WholePlace:
    return _whole_at(places, number)


@jit.inlined
def _real_place(places: int, number: int) -> RealPlace:
    return _real_at(places, number)


def _row_of(
    place_at: Callable[[int, int], RealPlace | WholePlace], mix: Callable[..., None]
) -> Callable[[MixRecord, int, int, int, int, int], None]:
    """Make the loop over a row of bytes, places read by ``place_at``, mixed by ``mix``."""

    @jit.inlined
    def row_of_bytes(r: MixRecord, lanes: int, read: int, z: int, x: int, row: int) -> None:
        down, columns, width, channels = place_at(r.rows, row), r.columns, r.width, r.channels
        above, below, rows = x + down.lower, x + down.upper, (down.near, down.far)
        for column in range(width):
            across = place_at(columns, column)
            left, right = across.lower, across.upper - across.lower
            shares = (across.near, across.far)
            for first in range(0, channels, lanes):
                at = min(first, channels - lanes)
                upper, lower = above + left + at, below + left + at
                mix((z + at, upper, lower, right), rows, shares, lanes, read)
            z += channels

    return row_of_bytes


_row_of_signed = _row_of(_whole_place, _signed)
_row_of_unsigned = _row_of(_real_place, _unsigned)


@jit.inlined
def _row_by_long_integers(r: MixRecord, z: int, x: int, row: int) -> None:
    down = _whole_at(r.rows, row)
    above, below, near, far = x + down.lower, x + down.upper, down.near, down.far
    for column in range(r.width):
        across = _whole_at(r.columns, column)
        a, b = integers_at(above + across.lower, INT16), integers_at(below + across.lower, INT16)
        c, d = integers_at(above + across.upper, INT16), integers_at(below + across.upper, INT16)
        y, this, next_ = integers_at(z, INT16), across.near, across.far
        for k in range(r.channels):
            left, right = a[k] * near + b[k] * far, c[k] * near + d[k] * far
            total = left * this + right * next_
            y[k] = (total + HALF + (total >> 63)) >> BITS
        z += r.pixel


def step(
    number: Number,
    x: Array,
    z: Array,
    rows: Sequence[RealPlace | WholePlace],
    columns: Sequence[RealPlace | WholePlace],
) -> NativeStep:
    """Make the step of images z that are mixed of images x, both [n, rows, columns, channels]."""
    memory, kind = Memory(), type(rows[0])
    images, height, width, channels = z.shape
    pixel, image = channels * z.itemsize, x.strides[0]
    offsets = [np.array([[p.lower, p.upper] for p in places]) for places in (rows, columns)]
    row_move, column_move = map(among, offsets)
    record = MixRecord(
        begin=0,
        end=images * height,
        z=reach(z, z.nbytes),
        x=reach(x, pixel, turns(images, image), row_move, column_move),
        height=height,
        width=width,
        channels=channels,
        pixel=pixel,
        image=image,
        last=images * image - x.strides[1],
        rows=memory.table(rows, kind),
        columns=memory.table(columns, kind),
    )
    return strided.step(kernel(int(number), _lanes(number, channels)), record, z.size, memory)


def _lanes(number: Number, channels: int) -> int:
    """Choose how many channels are computed at once: as many as a vector of bytes has, or parts of
    one where there are less.
    """
    if number in (Number.FLOAT32, Number.INT16):
        return LANES if channels >= LANES else 0
    return next((lanes for lanes in (LANES, 8, 4) if lanes <= channels), channels)
