"""One compiled kernel that makes images of pixels of others, picked by their rows and columns."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, among, reach, turns
from luciole.kernels.elements import strided
from luciole.kernels.jit import longs
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.moves import copy


class PickRecord(Shared):
    """Rows of all images of a result z and an operand x; for each row and column, how many bytes
    the pixels that it is made of lie behind the first.
    """

    z: int
    x: int
    height: int
    width: int
    pixel: int
    """Bytes of one."""
    image: int
    """Bytes of one of the operand."""
    rows: int
    columns: int


@cache
def kernel() -> jit.Kernel:
    """Make the kernel."""

    @jit.kernel
    def pick_pixels(r: PickRecord) -> None:
        rows, before = longs(r.rows), -1
        for row in range(r.begin, r.end):
            place = row // r.height * r.image + rows[row % r.height]
            z = r.z + row * r.width * r.pixel
            if place == before:
                copy(z, z - r.width * r.pixel, r.width * r.pixel)
            else:
                _pick(z, r.x + place, r.columns, r.width, r.pixel)
            before = place

    return pick_pixels


@jit.inlined
def _pick(z: int, x: int, columns: int, width: int, pixel: int) -> None:
    places = longs(columns)
    for column in range(width):
        copy(z, x + places[column], pixel)
        z += pixel


def step(x: Array, z: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NativeStep:
    """Make the step of images z that are made of the rows and columns of images x, both
    [n, rows, columns, channels].
    """
    memory = Memory()
    images, height, width, channels = z.shape
    pixel, image = channels * z.itemsize, x.strides[0]
    rows, columns = rows * x.strides[1], columns * x.strides[2]
    record = PickRecord(
        begin=0,
        end=images * height,
        z=reach(z, z.nbytes),
        x=reach(x, pixel, turns(images, image), among(rows), among(columns)),
        height=height,
        width=width,
        pixel=pixel,
        image=image,
        rows=memory.keep(rows, height),
        columns=memory.keep(columns, width),
    )
    return strided.step(kernel(), record, z.size, memory)
