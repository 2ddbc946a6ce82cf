"""Compiled kernels of sums of quantized integers of 16 bits, stretched to one shape. They compute
what the reference kernels compute.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array
from luciole.ir.ops import elementwise_binary as ops
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native
from luciole.kernels.elements import integer_pairs, strided
from luciole.kernels.fixed_point.compiled import Factor
from luciole.kernels.integers.elementwise_binary import INT16, common
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.bytes import Vector, in_lanes, plus
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.fixed_point import rescaled
from luciole.kernels.jit.vector.shorts import (
    difference,
    load_all_shorts,
    load_shorts,
    raised,
    store_all_shorts,
    store_shorts,
)
from luciole.kernels.layers.int8.layer import fixed_constants

SHORT = int(Kind.INT16)
SIZE = 2
"""Bytes of an element."""


class SumRecord(strided.Walk):
    """By how many bits operands are finer, addresses of what ``rescaled`` reads for x, y and the
    result, what raises each so that it has no sign, and limits.
    """

    left: int
    x_constants: int
    x_raised: int
    y_constants: int
    y_raised: int
    constants: int
    raised: int
    low: int
    high: int


def _builds(cls: type[ops.Add | ops.Sub], minus: int) -> None:
    """Register the compiled kernel of sums, or of differences where ``minus`` is 1: 16 at a time
    where all factors are below 1, else one by one.
    """
    function = integer_pairs.Function.DIFFERENCE if minus else integer_pairs.Function.SUM

    @native(cls, INT16)
    def build(op: ops.Add | ops.Sub, context: Context) -> Built:
        (x, y), (z,), total = context.pair, context.results, accepted(common, op)
        if isinstance(total, Declined):
            return total
        pairs = total.pairs(function)
        is_small = all(int(shift) <= 0 and int(m) < 2**31 for m, shift in total.factors)
        if not is_small or any(total.zeros) or total.grid.zero or not total.left:
            return integer_pairs.step(pairs, x, y, z)
        return _step(pairs, x, y, z, minus)


def _step(pairs: integer_pairs.Pairs, x: Array, y: Array, z: Array, minus: int) -> NativeStep:
    memory, (low, high) = Memory(), pairs.limits
    walk, cut = strided.walk(z, x, y, memory)
    (x_at, x_raised), (y_at, y_raised), (at, by) = (
        _constants(factor, memory) for factor in pairs.factors
    )
    record = SumRecord(
        **walk.fields(),
        left=pairs.left,
        x_constants=x_at,
        x_raised=x_raised,
        y_constants=y_at,
        y_raised=y_raised,
        constants=at,
        raised=by,
        low=low,
        high=high,
    )
    compiled = kernel(minus, *cut.moving)
    return strided.step(compiled, record, z.size, memory)


def _constants(factor: Factor, memory: Memory) -> tuple[int, int]:
    """Keep a factor as ``rescaled`` reads it, and return its address and what numbers are raised
    by.
    """
    multiplier, shift = (np.full((1, LANES), int(n), np.int64) for n in factor)
    packed, by = fixed_constants(multiplier, shift, LANES)
    return memory.keep(packed, *packed.shape), int(by[0, 0])


@cache
def kernel(minus: int, left: int, right: int) -> jit.Kernel:
    """Make the kernel of sums, or of differences.

    ``left`` and ``right`` are 0 where a single number meets all of a line, else 1.
    """

    @jit.inlined
    def short_sums(r: SumRecord, z: int, x: int, y: int) -> None:
        p, q = in_lanes(integers_at(x, SHORT)[0]), in_lanes(integers_at(y, SHORT)[0])
        count = r.count
        for first in range(0, SIZE * (count - LANES + 1), SIZE * LANES):
            if left:
                p = load_all_shorts(x + first)
            if right:
                q = load_all_shorts(y + first)
            store_all_shorts(_summed(r, p, q, minus), r.low, r.high, z + first)
        rest = count % LANES
        if rest:
            done = SIZE * (count - rest)
            if left:
                p = load_shorts(x + done, rest)
            if right:
                q = load_shorts(y + done, rest)
            store_shorts(_summed(r, p, q, minus), r.low, r.high, z + done, rest)

    return strided.by_lines(short_sums, SumRecord)


@jit.inlined
def _summed(r: SumRecord, p: Vector, q: Vector, minus: int) -> Vector:
    """Bring both to the common grid, add them, and bring the sum to the result's."""
    p = rescaled(raised(p, r.left, r.x_raised), r.x_constants, 0)
    q = rescaled(raised(q, r.left, r.y_raised), r.y_constants, 0)
    both = difference(p, q) if minus else plus(p, q)
    return rescaled(raised(both, 0, r.raised), r.constants, 0)


_builds(ops.Add, 0)
_builds(ops.Sub, 1)
