"""Functions of bytes in vector registers: quotients, sums on other grids, tables."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Truth, Value, emits
from luciole.kernels.jit.processor import features
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bytes import LONGS, MANY, Vector, in_all
from luciole.kernels.jit.vector.dots import together
from luciole.kernels.jit.vector.fixed_point import Limits, packed
from luciole.kernels.jit.vector.vectors import (
    FLOATS,
    I32,
    INTS,
    LANES,
    gather,
    load,
    pointer,
    splat,
    store,
    wide_shuffle,
    wide_splat,
)


@emits
def quotients(builder: Builder, x: Vector, count: Int64) -> Vector:
    """x / count, halves rounded away from zero; |x| and its quotients times ``count`` lie below
    2^24, where single precision tells quotients from the next integers.
    """
    x, count = builder.extract_value(x, 0), builder.trunc(count, I32)
    divisor, half = (
        splat(builder, count),
        splat(builder, builder.lshr(count, ir.Constant(I32, 1))),
    )
    negative = builder.icmp_signed("<", x, in_all(0))
    size = builder.select(negative, builder.neg(x), x)
    above, below = (builder.sitofp(n, FLOATS) for n in (builder.add(size, half), divisor))
    found = builder.fptosi(builder.fdiv(above, below), INTS)
    return gather(builder, [builder.select(negative, builder.neg(found), found)])


@emits
def rescaled_lanes(
    builder: Builder, x: Vector, multiplier: Int64, half: Int64, negative: Int64, bits: Int64
) -> Vector:
    """x times a factor of at most 1, as ``fixed_point.arithmetic.multiply`` has it: the upper half
    of the product with a multiplier, then halves away from zero, for
    ``integers.elementwise_binary_bytes``.
    """
    x = builder.sext(builder.extract_value(x, 0), LONGS)
    multiplier, half, negative, bits = (
        splat(builder, a) for a in (multiplier, half, negative, bits)
    )
    product = builder.add(builder.mul(x, multiplier), in_all(1 << 30, LONGS))
    upper = builder.ashr(product, in_all(31, LONGS))
    sign = builder.and_(builder.ashr(upper, in_all(63, LONGS)), negative)
    whole = builder.ashr(builder.add(builder.add(upper, half), sign), bits)
    return gather(builder, [builder.trunc(whole, INTS)])


@emits
def summed(builder: Builder, x: Vector, y: Vector, constants: Address) -> Vector:
    """Two vectors of bytes as steps of their sum, whose int64 constants stand at an address, see
    ``luciole.kernels.integers.elementwise_binary_bytes``.
    """
    x, y = (builder.extract_value(v, 0) for v in (x, y))
    given = _Constants(builder, constants)
    coarse = builder.mul(x, given.word(0))
    low = builder.ashr(builder.add(builder.mul(y, given.word(2)), given.word(3)), in_all(11))
    fine = builder.add(builder.add(builder.mul(y, given.word(1)), given.word(4)), low)
    fine = builder.mul(_halved(builder, fine, *(given.word(k) for k in (5, 6, 7))), given.word(8))
    total = builder.add(builder.add(coarse, given.word(9)), fine)
    upper = _upper(builder, total, given.long(10), given.long(11))
    steps = _halved(builder, upper, *(given.word(k) for k in (12, 13, 14)))
    return gather(builder, [builder.add(steps, given.word(15))])


class _Constants:
    """Numbers at an address that nobody writes to, so that loops read them once."""

    def __init__(self, builder: Builder, address: Value) -> None:
        self._builder, self._address = builder, address

    def _number(self, place: int) -> Value:
        number = self._builder.load(pointer(self._builder, self._address, I64, 8 * place))
        number.set_metadata("invariant.load", self._builder.module.add_metadata([]))
        return number

    def word(self, place: int) -> Value:
        """A number in 16 lanes of int32."""
        return splat(self._builder, self._builder.trunc(self._number(place), I32))

    def many(self, place: int) -> Value:
        """A number in 64 lanes of bytes."""
        number = self._builder.trunc(self._number(place), MANY.element)
        return wide_splat(self._builder, number, 4 * LANES)

    def long(self, place: int) -> Value:
        """A number in 8 lanes of int64."""
        return wide_splat(self._builder, self._number(place), LANES // 2)


def _halved(builder: Builder, x: Value, half: Value, negative: Value, bits: Value) -> Value:
    """x / 2^bits, halves away from zero; ``negative`` is -1, or 0 where bits is."""
    sign = builder.and_(builder.ashr(x, in_all(31)), negative)
    return builder.ashr(builder.add(builder.add(x, half), sign), bits)


def _upper(builder: Builder, x: Value, multiplier: Value, addend: Value) -> Value:
    """The upper halves of x multiplier + addend, x and the multiplier unsigned and below 2^32."""
    half = LANES // 2
    longs = ir.VectorType(I64, half)
    low, down = (ir.Constant(longs, [n] * half) for n in (0xFFFFFFFF, 32))
    pairs = builder.bitcast(x, longs)
    multiplier = builder.and_(multiplier, low)
    even, odd = (
        builder.bitcast(builder.add(builder.mul(part, multiplier), addend), INTS)
        for part in (builder.and_(pairs, low), builder.lshr(pairs, down))
    )
    order = [2 * (lane // 2) + 1 + LANES * (lane % 2) for lane in range(LANES)]
    return wide_shuffle(builder, even, odd, order)


@emits
def looks_up_many(builder: Builder) -> Truth:
    """Whether the machine looks up 64 bytes at once, known when a kernel is compiled."""
    known = "avx512vbmi" in features()
    return ir.Constant(ir.IntType(1), known)


@emits
def look_up_64(builder: Builder, to: Address, x: Address, table: Address) -> None:
    """Write what a table of 256 bytes has for each of 64 bytes; only where ``looks_up_many``."""
    if "avx512vbmi" not in features():
        return
    store(builder, _looked_up(builder, _many(builder, x), table, 0), to, align=1)


@emits
def sum_64(builder: Builder, to: Address, x: Address, y: Address, constants: Address) -> None:
    """Write the sums of 64 bytes and 64 others; only where ``looks_up_many``. Its constants, see
    ``luciole.kernels.integers.elementwise_binary_bytes``, stand at an address.
    """
    if "avx512vbmi" not in features():
        return
    given, none = _Constants(builder, constants), ir.Constant(MANY, None)
    coarse = builder.xor(_many(builder, x), given.many(128))
    fine, index = [], _many(builder, y)
    for plane in range(4):
        fine.append(_looked_up(builder, index, constants, 256 * plane))
    vectors = zip(
        together(builder, [none, none, none, coarse]), together(builder, fine), strict=True
    )
    steps = [_steps_of_sum(builder, upper, rest, given) for upper, rest in vectors]
    limits = Limits(builder, builder.add(constants, ir.Constant(I64, 8 * 132)))
    found = packed(builder, gather(builder, steps), 4, limits)[0]
    store(builder, found, to, align=1)


def _steps_of_sum(builder: Builder, upper: Value, rest: Value, given: _Constants) -> Value:
    """Signed bytes, in the uppermost 8 of 32 bits, times 2^19, and what is added to them as steps
    of the result, see ``luciole.kernels.jit.vector.fixed_point.rescaled``.
    """
    total = builder.add(builder.ashr(upper, in_all(5)), rest)
    above = _upper(builder, total, given.long(129), given.long(130))
    more = builder.lshr(total, in_all(31))
    return builder.ashr(builder.add(above, more), given.word(131))


def _many(builder: Builder, address: Value) -> Value:
    """64 bytes."""
    return load(builder, MANY, address, align=1)


def _looked_up(builder: Builder, given: Value, table: Value, offset: int) -> Value:
    """What a table of 256 bytes, ``offset`` bytes behind an address, has for each of 64 bytes."""
    quarters = []
    for k in range(4):
        quarters.append(load(builder, MANY, table, offset + 64 * k, align=1))
        quarters[-1].set_metadata("invariant.load", builder.module.add_metadata([]))
    lower, upper = (_of_two(builder, given, *quarters[k : k + 2]) for k in (0, 2))
    is_upper = builder.icmp_signed("<", given, ir.Constant(MANY, [0] * 64))
    return builder.select(is_upper, upper, lower)


def _of_two(builder: Builder, x: Value, first: Value, second: Value) -> Value:
    """What two vectors have in the places that the lowest 7 bits of each byte say:
    ``vpermi2b``.
    """
    kind = ir.FunctionType(MANY, [MANY] * 3)
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [first, x, second])
