"""MinifloatDecode and MinifloatRound kernels."""

from __future__ import annotations

import math

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.minifloat import MANTISSAS, Minifloat, unpack_codes
from luciole.ir.ops.fill import not_negative
from luciole.ir.ops.minifloat import MinifloatDecode, MinifloatRound, check_bytes, number_format
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import unary
from luciole.kernels.formulas.algebra import N
from luciole.kernels.formulas.elementwise import Applied, define_parametric


@reference(MinifloatDecode, TensorType.UINT8)
def decode(op: MinifloatDecode, codes: Array, dims: Array) -> Array:
    """Unpack the codes and take the numbers that they stand for."""
    numbers = _format(op)
    shape = affordable(op, not_negative(integers(dims, "dims"), "dims"))
    check_bytes(op, codes.size, shape)
    unpacked = unpack_codes(codes, numbers.bits, math.prod(shape))
    return numbers.decode(unpacked).astype(NUMPY[TensorType.FLOAT32]).reshape(shape)


@reference(MinifloatRound, TensorType.FLOAT32)
def round_(op: MinifloatRound, x: Array) -> Array:
    """Round to the nearest numbers."""
    return _format(op).round(x)


@unary.by_attributes(MinifloatRound)
def chosen(op: MinifloatRound) -> Applied:
    """Round by adding and subtracting a number with the distance of the results in its last
    place.
    """
    numbers = _format(op)
    return Applied(_ROUND[numbers.mantissa], numbers.largest, numbers.least_normal)


def _format(op: MinifloatDecode | MinifloatRound) -> Minifloat:
    """Return the operator's numbers. Raises LucioleError for numbers of bits that there are not."""
    numbers = number_format(op)
    for fault in numbers.faults():
        raise LucioleError(fault)
    return numbers


def _rounded(x: N, largest: N, least: N, mantissa: int) -> N:
    """Round to ``mantissa`` bits behind the first one: beside 1.5 2^23 steps, one step is the last
    place of a float32.
    """
    inside = x.at_least(-largest).at_most(largest)
    power = inside.power().at_least(least)
    beside = power * (1.5 * 2.0 ** (23 - mantissa))
    return inside + beside - beside


def _rounding(mantissa: int) -> int:
    """Number the function that rounds to some bits of mantissa."""
    return define_parametric(
        f"MinifloatRound{mantissa}", lambda x, a, b: _rounded(x, a, b, mantissa)
    )


_ROUND = {mantissa: _rounding(mantissa) for mantissa in MANTISSAS}
