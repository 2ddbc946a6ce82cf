"""Compiled kernels of sums and products of quantized bytes, stretched to one shape. They
compute what the reference kernels compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np

from luciole.ir import TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import elementwise_binary as ops
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native
from luciole.kernels.elements import lookups, strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.elements.integer_pairs import Pairs
from luciole.kernels.fixed_point.compiled import Factor, FactorRecord
from luciole.kernels.integers.elementwise_binary import LEFT, SMALL, Sum, product
from luciole.kernels.integers.functions_of_bytes import table_of
from luciole.kernels.integers.linear_sums import Halves, linear_sum
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.byte_functions import (
    SumConstants,
    WideProduct,
    WideSum,
    multiplied,
    product_64,
    rescaled_lanes,
    sum_64,
    summed,
)
from luciole.kernels.jit.vector.bytes import (
    Vector,
    in_lanes,
    load_all_bytes,
    load_bytes,
    plus,
    store_all_bytes,
    store_bytes,
)
from luciole.kernels.jit.vector.conversions import integers_at
from luciole.kernels.jit.vector.linear_sums import linear_sum_64

Whole: TypeAlias = int | np.int32
"""An integer of 32 bits, or one that fits into them."""

O = TypeVar("O", bound=ops.Binary)  # noqa: E741  # the operator class


class Function(IntEnum):
    """A function of two bytes."""

    SUM = 0
    PRODUCT = 1


SUM = int(Function.SUM)

WIDE = 64
"""Bytes in one register of 512 bits."""

HALF = (1 << 30, 0, 0, 0)
"""The factor 1/2 as ``rounding`` has it."""


class Wide(IntEnum):
    """How 64 results are computed at a time."""

    NONE = 0
    """Not at all."""
    ROUNDED = 1
    """By a ``WideSum`` or ``WideProduct``, rounded as TFLite does."""
    LINEAR = 2
    """By a ``LinearSum``, halves up."""
    TIED = 3
    """By one, halves away from zero."""


LINEAR, TIED = int(Wide.LINEAR), int(Wide.TIED)


class PairRecord(strided.Walk):
    """The limits of results, and the address of what ``Wide`` says; for sums that of a
    ``SumConstants``; for products zero points of x, y and the result and the factor. Fields that a
    function does not need are 0.
    """

    low: int
    high: int
    constants: int
    wide: int
    x_zero: int
    y_zero: int
    zero: int
    multiplier: int
    half: int
    negative: int
    bits: int
    up: int


NOTHING = dict.fromkeys(
    set(PairRecord.layout.names or ()) - set(strided.Walk.layout.names or ()), 0
)
"""Fields of which a function needs some."""


@dataclass(frozen=True)
class Parameters:
    """Fields of a record besides the walk, the memory behind it, how 64 results are computed at a
    time, and whether operands change places.
    """

    fields: dict[str, int] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    wide: Wide = Wide.NONE
    swapped: bool = False


Combine: TypeAlias = Callable[[PairRecord, Vector, Vector], Vector]
"""Computes 16 results, as steps of them, of as many bytes from each operand."""


def _by_16(combined: Combine) -> Callable[..., None]:
    """Make the function that computes a line of results, 16 at a time."""

    @jit.inlined
    def line(
        r: PairRecord, z: int, x: int, y: int, count: int, kind: int, left: int, right: int
    ) -> None:
        p, q = in_lanes(integers_at(x, kind)[0]), in_lanes(integers_at(y, kind)[0])
        low, high = r.low, r.high
        for first in range(0, count - LANES + 1, LANES):
            if left:
                p = load_all_bytes(x + first, kind)
            if right:
                q = load_all_bytes(y + first, kind)
            store_all_bytes(combined(r, p, q), low, high, z + first)
        rest = count % LANES
        if rest:
            done = count - rest
            if left:
                p = load_bytes(x + done, rest, 0, kind)
            if right:
                q = load_bytes(y + done, rest, 0, kind)
            store_bytes(combined(r, p, q), low, high, z + done, rest)

    return line


@jit.inlined
def _sum(r: PairRecord, p: Vector, q: Vector) -> Vector:
    return summed(p, q, r.constants)


@jit.inlined
def _product(r: PairRecord, p: Vector, q: Vector) -> Vector:
    product = multiplied(p, q, r.x_zero, r.y_zero, r.up)
    steps = rescaled_lanes(product, r.multiplier, r.half, r.negative, r.bits)
    return plus(steps, in_lanes(r.zero))


_sums_by_16, _products_by_16 = _by_16(_sum), _by_16(_product)


@cache
def kernel(function: int, kind: int, left: int, right: int, wide: int) -> jit.Kernel:
    """Make the kernel of a function of bytes of a kind, 64 at a time as a ``Wide`` says.

    ``left`` and ``right`` are 0 where a single number meets all of a line, else 1.
    """

    @jit.inlined
    def quantized_pairs(r: PairRecord, z: int, x: int, y: int) -> None:
        if function == SUM:
            _sums(r, z, x, y, kind, left, right, wide)
        else:
            _products(r, z, x, y, kind, left, right, wide)

    return strided.by_lines(quantized_pairs, PairRecord)


@jit.inlined
def _sums(
    r: PairRecord, z: int, x: int, y: int, kind: int, left: int, right: int, wide: int
) -> None:
    """Compute a line of sums: 64 at a time where there are constants for it, then 16."""
    whole, count, constants = 0, r.count, r.wide
    if wide:
        whole, count = count - count % WIDE, count % WIDE
    for first in range(0, whole, WIDE):
        if wide == LINEAR:
            linear_sum_64(z + first, x + first, y + first, constants, kind, 0)
        elif wide == TIED:
            linear_sum_64(z + first, x + first, y + first, constants, kind, 1)
        else:
            sum_64(z + first, x + first, y + first, constants, kind)
    if count:
        _sums_by_16(r, z + whole, x + whole, y + whole, count, kind, left, right)


@jit.inlined
def _products(
    r: PairRecord, z: int, x: int, y: int, kind: int, left: int, right: int, wide: int
) -> None:
    """Compute a line of products: 64 at a time where there are constants for it, then 16."""
    count = r.count
    if wide:
        for _ in range(count // WIDE):
            product_64(z, x, y, r.wide, kind)
            x += WIDE
            y += WIDE
            z += WIDE
        count %= WIDE
    if count:
        _products_by_16(r, z, x, y, count, kind, left, right)


def step(function: Function, context: Context, kind: int, parameters: Parameters) -> NativeStep:
    """Make the step of a function of both operands, its parameters behind the loops of a record."""
    x, y = reversed(context.pair) if parameters.swapped else context.pair
    z = context.results[0]
    walk, cut = strided.walk(z, x, y, parameters.memory)
    left, right = cut.moving
    wide = parameters.wide if left and right else Wide.NONE
    compiled = kernel(int(function), kind, left, right, int(wide))
    record = PairRecord(**walk.fields(), **NOTHING | parameters.fields)
    return strided.step(compiled, record, z.size, parameters.memory)


def rounding(factor: Factor) -> tuple[int, int, int, int]:
    """Return a factor's multiplier, then half, sign mask and exponent of a rounded division by a
    power of two.
    """
    multiplier, shift = (int(n) for n in factor)
    bits = max(-shift, 0)
    return multiplier, (1 << bits) >> 1, -1 if bits else 0, bits


def sum_parameters(op: ops.Add | ops.Sub, sign: int) -> Parameters | None:
    """Compute the parameters of the kernel of x + sign y: limits and addresses of constants. None
    where the result's factor is 1 or more.
    """
    total = Sum.of(op, LEFT)
    points, factors, grid = total.zeros, total.factors, total.grid
    if int(factors[2][1]) > 0 or not _in_range((*points, grid.zero)):
        return None
    is_first = rounding(factors[0]) == HALF
    signs = (1, sign) if is_first else (sign, 1)
    coarse = 0 if is_first else 1
    memory, (low, high) = Memory(), grid.limits
    constants = memory.record(_constants(total, coarse, signs))
    ordered = total.turned() if coarse else total
    linear = linear_sum(ordered, signs, memory)
    if linear is not None:
        wide, place = Wide.TIED if linear[0] == Halves.AWAY else Wide.LINEAR, linear[1]
    else:
        place = _wide_sum(total, coarse, signs, constants, memory)
        wide = Wide.ROUNDED if place else Wide.NONE
    fields = {"low": low, "high": high, "constants": constants, "wide": place}
    return Parameters(fields, memory, wide, not is_first)


def _constants(total: Sum, coarse: int, signs: tuple[int, int]) -> SumConstants:
    """Compute the constants of ``summed``; the signs are those of the coarser and of the finer
    operand.
    """
    points, factors, fine = total.zeros, total.factors, 1 - coarse
    fine_multiplier, fine_half, fine_negative, fine_bits = rounding(factors[fine])
    upper, lower = fine_multiplier >> 15 << 4, fine_multiplier & 0x7FFF
    multiplier, half, negative, bits = rounding(factors[2])
    step = signs[0] << (LEFT - 1)
    return SumConstants(
        coarse_step=step,
        fine_upper=upper,
        fine_lower=lower,
        fine_lower_start=1024 - points[fine] * lower,
        fine_upper_start=-points[fine] * upper,
        fine_half=fine_half,
        fine_negative=fine_negative,
        fine_bits=fine_bits,
        fine_sign=signs[1],
        start=(1 << 31) - points[coarse] * step,
        multiplier=2 * multiplier,
        addend=(1 << 31) - (multiplier << 32),
        half=half,
        negative=negative,
        bits=bits,
        zero_point=total.grid.zero,
    )


def _wide_sum(
    total: Sum, coarse: int, signs: tuple[int, int], constants: int, memory: Memory
) -> int:
    """Keep the constants of ``sum_64`` and return their address, 0 where nothing is shifted."""
    multiplier, half, _, bits = rounding(total.factors[2])
    if not bits:
        return 0
    dtype = NUMPY[total.grid.dtype]
    raised, zero = 128 + np.iinfo(dtype).min, total.zeros[coarse]
    turned = raised if signs[0] > 0 else 255 ^ raised
    begin = raised - zero if signs[0] > 0 else zero - raised + 1
    every = np.arange(256, dtype=np.uint8).view(dtype)
    steps = total.scaled(every, 1 - coarse).astype(np.int64)
    fine = signs[1] * steps + (begin << (LEFT - 1)) + (1 << 31)
    planes = fine.astype(np.uint32).view(np.uint8).reshape(256, 4).T
    zero_point, low, high = (n - raised for n in (total.grid.zero, *total.grid.limits))
    record = WideSum(
        zero_point=zero_point,
        low=low,
        high=high,
        turned=raised,
        fine=memory.keep(planes, 4, 256),
        coarse_turned=turned,
        products=constants,
        multiplier=2 * multiplier,
        addend=(1 << 31) + ((half - 1) << 32) - (multiplier << 32),
        bits=bits,
    )
    return memory.record(record)


def product_parameters(op: ops.Mul) -> Parameters | None:
    """Compute the parameters of the kernel of a product: zero points of x, y and the result, its
    limits and its factor.
    """
    pairs = product(op)
    (x_zero, y_zero), (low, high), factor = pairs.zeros, pairs.limits, pairs.factors[2]
    if not _in_range((x_zero, y_zero, pairs.zero)):
        return None
    memory = Memory()
    fields = {"x_zero": x_zero, "y_zero": y_zero, "zero": pairs.zero, "low": low, "high": high}
    fields |= FactorRecord.of(factor).fields()
    place = _wide_product(pairs, op.required(0).dtype, memory)
    wide = Wide.ROUNDED if place else Wide.NONE
    return Parameters({**fields, "wide": place}, memory, wide)


def _wide_product(pairs: Pairs, dtype: TensorType, memory: Memory) -> int:
    """Keep the constants of ``product_64`` and return their address, 0 for a factor of 1 or
    more.
    """
    multiplier, half, _, bits = rounding(pairs.factors[2])
    if pairs.factors[2][1] > 0:
        return 0
    raised = 128 + int(np.iinfo(NUMPY[dtype]).min)
    start = 1 << (31 if bits else 30)  # where nothing is shifted, the upper bit is never set
    zero_point, low, high = (n - raised for n in (pairs.zero, *pairs.limits))
    record = WideProduct(
        zero_point=zero_point,
        low=low,
        high=high,
        turned=raised,
        multiplier=2 * multiplier,
        addend=(1 << 31) + (max(half - 1, 0) << 32) - 2 * start * multiplier,
        bits=bits,
        x_zero=pairs.zeros[0],
        y_zero=pairs.zeros[1],
        start=start,
    )
    return memory.record(record)


def _in_range(points: Sequence[int]) -> bool:
    """Return whether zero points are such that steps from them fit into 9 bits."""
    return all(-(2**7) <= point < 2**8 for point in points)


def _register(
    cls: type[O], function: Function, parameters: Callable[[O], Parameters | None]
) -> None:
    @native(cls, *SMALL)
    def build(op: O, context: Context) -> Built:
        alone = table_of(op)
        if alone is not None:
            slot, table = alone
            return lookups.of_table(table, context.pair[slot], context.results[0])
        chosen, kind = accepted(parameters, op), int(KINDS[op.required(0).dtype])
        if chosen is None or isinstance(chosen, Declined):
            return chosen
        return step(function, context, kind, chosen)


_register(ops.Add, Function.SUM, lambda op: sum_parameters(op, 1))
_register(ops.Sub, Function.SUM, lambda op: sum_parameters(op, -1))
_register(ops.Mul, Function.PRODUCT, product_parameters)
