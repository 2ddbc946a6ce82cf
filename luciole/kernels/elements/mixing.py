"""Compiled kernels of images each of whose pixels is a mean of four others, 16 channels at once."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache

import numpy as np

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, among, reach, turns
from luciole.kernels.core.registry import NativeStep
from luciole.kernels.elements import strided
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, Shared, reader
from luciole.kernels.jit.vector import bytes as vector_bytes
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.elementwise import Binary, Unary, Vector

SCALE, ADD = int(Unary.SCALE), int(Binary.ADD)
INT8, UINT8, INT16 = int(Kind.INT8), int(Kind.UINT8), int(Kind.INT16)


class Number(IntEnum):
    """What is mixed: by floats, or by integers of ``FRACTION_BITS``."""

    FLOAT32 = 0
    UINT8 = 1
    """Floats on the way, halves rounded up."""
    INT8 = 2
    INT16 = 3


FLOATS, UNSIGNED, SIGNED = int(Number.FLOAT32), int(Number.UINT8), int(Number.INT8)

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
    rows: int
    columns: int


_real_at, _whole_at = reader(RealPlace), reader(WholePlace)


@cache
def kernel(number: int, few: bool) -> jit.Kernel:
    """Make the kernel for a ``Number``, and for ``few`` channels: less than 16."""

    @jit.kernel
    def mix_pixels(r: MixRecord) -> None:
        for row in range(r.begin, r.end):
            x, z = r.x + row // r.height * r.image, r.z + row * r.width * r.pixel
            if number in (FLOATS, UNSIGNED):
                _row_by_floats(r, number, few, z, x, row % r.height)
            elif number == SIGNED:
                _row_by_integers(r, few, z, x, row % r.height)
            else:
                _row_by_long_integers(r, z, x, row % r.height)

    return mix_pixels


@jit.merged
def _row_by_floats(r: MixRecord, number: int, few: bool, z: int, x: int, row: int) -> None:
    down, columns = _real_at(r.rows, row), r.columns
    width, channels, pixel = r.width, r.channels, r.pixel
    above, below, near, far = x + down.lower, x + down.upper, down.near, down.far
    for column in range(width):
        across = _real_at(columns, column)
        left, right, this, next_ = across.lower, across.upper, across.near, across.far
        for first in range(0, LANES if few else channels, LANES):
            count = channels if few else min(channels - first, LANES)
            at = first * (4 if number == FLOATS else 1)
            a = _read(number, few, above + left + at, count)
            b = _read(number, few, below + left + at, count)
            c = _read(number, few, above + right + at, count)
            d = _read(number, few, below + right + at, count)
            sum_ = _plus(_times(a, near, this), _times(b, far, this))
            sum_ = _plus(sum_, _times(c, near, next_))
            sum_ = _plus(sum_, _times(d, far, next_))
            _write(number, few, sum_, z + at, count)
        z += pixel


@jit.merged
def _read(number: int, few: bool, address: int, count: int) -> Vector:
    if number == FLOATS:
        if not few and count == LANES:
            return elementwise.load_vector(address)
        return elementwise.load_first(address, count, np.float32(0))
    if not few and count == LANES:
        return vector_bytes.as_floats(vector_bytes.load_all_bytes(address, UINT8))
    return vector_bytes.as_floats(vector_bytes.load_bytes(address, count, 0, UINT8))


@jit.merged
def _write(number: int, few: bool, x: Vector, address: int, count: int) -> None:
    if number == FLOATS:
        _write_floats(few, x, address, count)
    else:
        codes = vector_bytes.toward_zero(_plus(x, elementwise.spread(np.float32(0.5))))
        _write_bytes(few, codes, 0, 255, address, count)


@jit.merged
def _write_floats(few: bool, x: Vector, address: int, count: int) -> None:
    if not few and count == LANES:
        elementwise.store_vector(x, address)
    else:
        elementwise.store_first(x, address, count)


@jit.merged
def _write_bytes(
    few: bool, x: vector_bytes.Vector, low: int, high: int, address: int, count: int
) -> None:
    if not few and count == LANES:
        vector_bytes.store_all_bytes(x, low, high, address)
    else:
        vector_bytes.store_bytes(x, low, high, address, count)


@jit.merged
def _times(x: Vector, first: float, second: float) -> Vector:
    """Multiply by two shares, one after the other."""
    scale = elementwise.function(SCALE)
    return elementwise.mapped(scale, elementwise.mapped(scale, x, first, 0), second, 0)


@jit.merged
def _plus(x: Vector, y: Vector) -> Vector:
    return elementwise.combined(elementwise.function(ADD), x, y)


@jit.merged
def _row_by_integers(r: MixRecord, few: bool, z: int, x: int, row: int) -> None:
    down, columns, width, channels = _whole_at(r.rows, row), r.columns, r.width, r.channels
    above, below, near, far = x + down.lower, x + down.upper, down.near, down.far
    for column in range(width):
        across = _whole_at(columns, column)
        left, right, this, next_ = across.lower, across.upper, across.near, across.far
        for first in range(0, LANES if few else channels, LANES):
            count = channels if few else min(channels - first, LANES)
            sum_ = _part(few, above + left + first, count, near * this)
            sum_ = vector_bytes.plus(sum_, _part(few, below + left + first, count, far * this))
            sum_ = vector_bytes.plus(sum_, _part(few, above + right + first, count, near * next_))
            sum_ = vector_bytes.plus(sum_, _part(few, below + right + first, count, far * next_))
            _write_bytes(few, vector_bytes.halved(sum_, BITS), -128, 127, z + first, count)
        z += channels


@jit.merged
def _part(few: bool, address: int, count: int, share: int) -> vector_bytes.Vector:
    if not few and count == LANES:
        return vector_bytes.times(vector_bytes.load_all_bytes(address, INT8), share)
    return vector_bytes.times(vector_bytes.load_bytes(address, count, 0, INT8), share)


@jit.merged
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
    moves = (turns(images, image), *map(among, offsets))
    record = MixRecord(
        begin=0,
        end=images * height,
        z=reach(z, z.nbytes),
        x=reach(x, pixel, *moves),
        height=height,
        width=width,
        channels=channels,
        pixel=pixel,
        image=image,
        rows=memory.table(rows, kind),
        columns=memory.table(columns, kind),
    )
    return strided.step(kernel(int(number), channels < LANES), record, z.size, memory)
