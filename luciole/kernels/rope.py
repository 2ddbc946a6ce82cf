"""ROPE kernels."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rope import Rope
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.reasons import Declined
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import strided
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector import rotations
from luciole.schema.enums import RoPEMode


@reference(Rope, TensorType.FLOAT32)
def rope(op: Rope, x: Array, sin_table: Array, cos_table: Array) -> Array:
    """Multiply each element by the cosine of its place, and its partner by the sine."""
    sin, cos = np.broadcast_to(sin_table, x.shape), np.broadcast_to(cos_table, x.shape)
    half = x.shape[-1] // 2
    if op.mode == RoPEMode.GPT_J:
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, half), slice(half, None)
    a, b = x[..., first], x[..., second]
    y = np.empty_like(x)
    y[..., first] = a * cos[..., first] - b * sin[..., first]
    y[..., second] = a * sin[..., second] + b * cos[..., second]
    return y


class RopeRecord(strided.Walk):
    """A walk over numbers x and a table y of sines, as which that of ``cosines`` lies; ``depth``
    floats are turned together.
    """

    cosines: int
    """Bytes from a sine to its cosine."""
    depth: int


@native(Rope, TensorType.FLOAT32)
def build(op: Rope, context: Context) -> Built:
    """Turn row by row, with the sines and cosines of the row's place."""
    x, sines, cosines = context.triple
    depth = x.shape[-1]
    if sines.shape != cosines.shape:
        return Declined("no compiled form of tables of two shapes")
    if depth not in (0, sines.shape[-1]):
        return Declined("no compiled form of tables without one number for each element")
    memory = Memory()
    walk, _ = strided.walk(context.results[0], x, sines, memory)
    beside = reach(cosines, cosines.nbytes) - reach(sines, sines.nbytes)
    record = RopeRecord(**walk.fields(), cosines=beside, depth=depth)
    kernel = _neighbours() if op.mode == RoPEMode.GPT_J else _halves()
    return strided.step(kernel, record, x.size, memory)


@cache
def _halves() -> jit.Kernel:
    """Make the kernel that pairs the first half of a row with the second."""

    @jit.inlined
    def line(r: RopeRecord, z: int, x: int, y: int) -> None:
        half = r.depth // 2
        for row in range(0, 4 * r.count, 4 * r.depth):
            for first in range(0, half, LANES):
                at = row + 4 * first
                sines = y + at
                rotations.turn_halves(
                    z + at, x + at, sines, sines + r.cosines, 4 * half, half - first
                )

    return strided.by_lines(line, RopeRecord)


@cache
def _neighbours() -> jit.Kernel:
    """Make the kernel that pairs elements of even index with the next."""

    @jit.inlined
    def line(r: RopeRecord, z: int, x: int, y: int) -> None:
        for first in range(0, r.count, LANES):
            at = 4 * first
            sines = y + at
            rotations.turn_neighbours(z + at, x + at, sines, sines + r.cosines, r.count - first)

    return strided.by_lines(line, RopeRecord)
