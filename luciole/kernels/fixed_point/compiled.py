"""TFLite's fixed-point factors inside of compiled kernels, bit for bit those of ``ir.analysis``."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from luciole.ir import Array
from luciole.ir.analysis.fixed_point import BITS
from luciole.kernels import jit
from luciole.kernels.jit.record import Record, reader

HALF = 1 << (BITS - 1)

Factor = tuple[int | Array, int | Array]
"""Multiplier and shift, as ``quantize_multiplier`` gives them."""

Whole: TypeAlias = int | np.int64
"""An integer of a kernel."""

Given: TypeAlias = tuple[int, int, int, int, int]
"""The fields of a ``FactorRecord``, which a kernel reads before its loop."""


class FactorRecord(Record):
    """A factor multiplier / 2^31 * 2^up / 2^bits. ``half`` is half of 2^bits and ``negative`` -1
    where bits is not 0, else both are 0.
    """

    multiplier: int
    up: int
    half: int
    negative: int
    bits: int

    @classmethod
    def of(cls, factor: Factor) -> FactorRecord:
        """Split the shift by its direction."""
        multiplier, shift = (int(n) for n in factor)
        bits = max(-shift, 0)
        return cls(
            multiplier=multiplier,
            up=max(shift, 0),
            half=(1 << bits) >> 1,
            negative=-1 if bits else 0,
            bits=bits,
        )


ONE: Factor = (1 << BITS, 0)
"""A multiplier and a shift that change nothing."""

_factor_at = reader(FactorRecord)


@jit.inlined
def factor_at(table: int, row: int) -> Given:
    """Read a factor of a table."""
    factor = _factor_at(table, row)
    return factor.multiplier, factor.up, factor.half, factor.negative, factor.bits


@jit.inlined
def by_factor(x: Whole, factor: Given) -> Whole:
    """Multiply a number, the lower 32 bits of which count, by a factor, as
    ``ir.analysis.fixed_point.multiply`` does.
    """
    multiplier, up, half, negative, bits = factor
    raised = np.int64(np.int32(x << up))
    upper = (raised * multiplier + HALF) >> BITS
    return (upper + half + ((upper >> 63) & negative)) >> bits
