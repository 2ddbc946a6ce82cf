"""Functions of bytes in vector registers: quotients, sums on other grids, tables."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Literal, Truth, Value, emits
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bytes import LONGS, MANY, Vector, in_all
from luciole.kernels.jit.vector.conversions import Kind
from luciole.kernels.jit.vector.dots import together
from luciole.kernels.jit.vector.fixed_point import ByteLimits, Limits, in_order, packed
from luciole.kernels.jit.vector.vectors import (
    BYTES,
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

LOOKS_UP_MANY = has("avx512vbmi")
"""Whether the machine looks up 64 bytes at once."""


class SumConstants(Record):
    """Constants of ``summed`` for a sum of a coarser operand, whose factor is 1/2 so that it is
    only shifted, and a finer one, whose product is added up from two parts that fit into int32.
    """

    coarse_step: int
    fine_upper: int
    fine_lower: int
    fine_lower_start: int
    fine_upper_start: int
    fine_half: int
    """Addend that rounds a division by 2 to the power of ``fine_bits``."""
    fine_negative: int
    fine_bits: int
    fine_sign: int
    start: int
    multiplier: int
    """The factor of the sum."""
    addend: int
    half: int
    negative: int
    bits: int
    zero_point: int


class WideResult(ByteLimits):
    """How 64 raised int32 become bytes, see ``fixed_point.rescaled``."""

    multiplier: int
    addend: int
    bits: int


class WideSum(WideResult):
    """Constants of ``sum_64`` for a sum."""

    fine: int
    """The address of an int32 for every byte of the finer operand, as four tables of 256 bytes, the
    lowest first.
    """
    coarse_turned: int
    """The bits of the coarser operand that are flipped, so that it is signed and added."""
    products: int
    """The address of a ``SumConstants``, where the machine looks up less than 64 bytes at once."""


class WideProduct(WideResult):
    """Constants of ``product_64``: zero points of both operands, and what raises products."""

    x_zero: int
    y_zero: int
    start: int


@emits
def quotients(builder: Builder, x: Vector, count: Int64) -> Vector:
    """Compute x / count, halves rounded away from zero; |x| and its quotients times ``count`` lie
    below 2^24, where single precision tells quotients from the next integers.
    """
    x, count = builder.extract_value(x, 0), builder.trunc(count, I32)
    divisor, half = (
        splat(builder, count),
        splat(builder, builder.lshr(count, ir.Constant(I32, 1))),
    )
    negative = builder.icmp_signed("<", x, in_all(0))
    size = builder.select(negative, builder.neg(x), x)
    above, below = (builder.sitofp(n, FLOATS) for n in (builder.add(size, half), divisor))
    whole = builder.fptosi(builder.fdiv(above, below), INTS)
    return gather(builder, [builder.select(negative, builder.neg(whole), whole)])


@emits
def rescaled_lanes(
    builder: Builder, x: Vector, multiplier: Int64, half: Int64, negative: Int64, bits: Int64
) -> Vector:
    """Multiply x by a factor of at most 1, as ``ir.analysis.fixed_point.multiply`` does: the upper
    half of the product with a multiplier, then halves away from zero. For
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
def multiplied(
    builder: Builder, x: Vector, y: Vector, x_zero: Int64, y_zero: Int64, up: Int64
) -> Vector:
    """Multiply two vectors of bytes less their zero points, shifted up by some bits."""
    zeros = (splat(builder, builder.trunc(zero, I32)) for zero in (x_zero, y_zero))
    p, q = (
        builder.sub(builder.extract_value(vector, 0), zero)
        for vector, zero in zip((x, y), zeros, strict=True)
    )
    bits = splat(builder, builder.trunc(up, I32))
    return gather(builder, [builder.shl(builder.mul(p, q), bits)])


@emits
def summed(builder: Builder, x: Vector, y: Vector, constants: Address) -> Vector:
    """Add two vectors of bytes, as steps of the result; ``constants`` is the address of a
    ``SumConstants``.
    """
    x, y = (builder.extract_value(v, 0) for v in (x, y))
    parameters = _Constants(builder, constants, SumConstants)
    total = _total(builder, x, y, parameters)
    upper = _upper(builder, total, parameters.long("multiplier"), parameters.long("addend"))
    steps = _halved(builder, upper, *parameters.words("half", "negative", "bits"))
    return gather(builder, [builder.add(steps, parameters.word("zero_point"))])


def _total(builder: Builder, x: Value, y: Value, parameters: _Constants) -> Value:
    """Add the coarser operand and the finer one as raised int32, see ``SumConstants``."""
    coarse = builder.mul(x, parameters.word("coarse_step"))
    low = builder.add(
        builder.mul(y, parameters.word("fine_lower")), parameters.word("fine_lower_start")
    )
    fine = builder.add(
        builder.mul(y, parameters.word("fine_upper")), parameters.word("fine_upper_start")
    )
    fine = builder.add(fine, builder.ashr(low, in_all(11)))
    fine = _halved(builder, fine, *parameters.words("fine_half", "fine_negative", "fine_bits"))
    fine = builder.mul(fine, parameters.word("fine_sign"))
    return builder.add(builder.add(coarse, parameters.word("start")), fine)


class _Constants:
    """A record at an address that nobody writes to, so that loops read it once."""

    def __init__(self, builder: Builder, address: Value, kind: type[Record]) -> None:
        self._builder, self._address, self._kind = builder, address, kind

    def number(self, name: str) -> Value:
        """Load a field."""
        place = pointer(self._builder, self._address, I64, self._kind.offset(name))
        number = self._builder.load(place)
        number.set_metadata("invariant.load", self._builder.module.add_metadata([]))
        return number

    def word(self, name: str) -> Value:
        """Load a field into 16 lanes of int32."""
        return splat(self._builder, self._builder.trunc(self.number(name), I32))

    def words(self, *names: str) -> list[Value]:
        """Load several fields, each as ``word`` does."""
        return [self.word(name) for name in names]

    def many(self, name: str) -> Value:
        """Load a field into 64 lanes of bytes."""
        number = self._builder.trunc(self.number(name), MANY.element)
        return wide_splat(self._builder, number, 4 * LANES)

    def long(self, name: str) -> Value:
        """Load a field into 8 lanes of int64."""
        return wide_splat(self._builder, self.number(name), LANES // 2)


def _halved(builder: Builder, x: Value, half: Value, negative: Value, bits: Value) -> Value:
    """Compute x / 2^bits, halves away from zero; ``negative`` is -1, or 0 where bits is."""
    sign = builder.and_(builder.ashr(x, in_all(31)), negative)
    return builder.ashr(builder.add(builder.add(x, half), sign), bits)


def _upper(builder: Builder, x: Value, multiplier: Value, addend: Value) -> Value:
    """Compute the upper halves of x multiplier + addend, x and the multiplier unsigned and below
    2^32.
    """
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
    """Return whether the machine looks up 64 bytes at once, known when a kernel is compiled."""
    return ir.Constant(ir.IntType(1), LOOKS_UP_MANY)


@emits
def look_up_64(builder: Builder, to: Address, x: Address, table: Address) -> None:
    """Look 64 bytes up in a table of 256 bytes and write the results; only where
    ``looks_up_many``.
    """
    if not LOOKS_UP_MANY:
        return
    store(builder, _looked_up(builder, _many(builder, x), table, 0), to, align=1)


@emits
def sum_64(
    builder: Builder, to: Address, x: Address, y: Address, constants: Address, kind: Literal
) -> None:
    """Write the sums of 64 bytes of a kind and 64 others. ``constants`` is the address of a
    ``WideSum``.
    """
    parameters = _Constants(builder, constants, WideSum)
    if LOOKS_UP_MANY:
        steps = _steps(builder, _sums_by_tables(builder, x, y, parameters), parameters)
        results = packed(builder, steps, 4, Limits(builder, constants))[0]
        store(builder, results, to, align=1)
        return
    parts = _Constants(builder, parameters.number("products"), SumConstants)
    pairs = _widened(builder, x, y, kind)
    totals = [_total(builder, p, q, parts) for p, q in pairs]
    _store_steps(builder, totals, parameters, constants, to)


@emits
def product_64(
    builder: Builder, to: Address, x: Address, y: Address, constants: Address, kind: Literal
) -> None:
    """Write the products of 64 bytes of a kind and 64 others. ``constants`` is the address of a
    ``WideProduct``.
    """
    parameters = _Constants(builder, constants, WideProduct)
    zeros, start = parameters.words("x_zero", "y_zero"), parameters.word("start")
    totals = []
    for pair in _widened(builder, x, y, kind):
        p, q = (builder.sub(number, zero) for number, zero in zip(pair, zeros, strict=True))
        totals.append(builder.add(builder.mul(p, q), start))
    _store_steps(builder, totals, parameters, constants, to)


def _widened(builder: Builder, x: Value, y: Value, kind: int) -> list[tuple[Value, Value]]:
    """Load 64 bytes from each of two addresses as int32, 16 at a time."""
    widen = builder.sext if kind == Kind.INT8 else builder.zext
    x_parts, y_parts = (
        [widen(load(builder, BYTES, place, LANES * k, align=1), INTS) for k in range(4)]
        for place in (x, y)
    )
    return list(zip(x_parts, y_parts, strict=True))


def _sums_by_tables(builder: Builder, x: Value, y: Value, parameters: _Constants) -> list[Value]:
    """Add signed bytes, in the uppermost 8 of 32 bits, scaled by 2^19, and the entries of tables
    for the others, in the order of ``packed``.
    """
    none = ir.Constant(MANY, None)
    coarse = builder.xor(_many(builder, x), parameters.many("coarse_turned"))
    table, index = parameters.number("fine"), _many(builder, y)
    fine = [_looked_up(builder, index, table, 256 * plane) for plane in range(4)]
    vectors = zip(
        together(builder, [none, none, none, coarse]), together(builder, fine), strict=True
    )
    return [builder.add(builder.ashr(upper, in_all(5)), rest) for upper, rest in vectors]


def _store_steps(
    builder: Builder, totals: list[Value], parameters: _Constants, limits: Value, to: Value
) -> None:
    """Write four vectors of raised int32 as 64 bytes, steps of the result."""
    steps = _steps(builder, totals, parameters)
    results = packed(builder, steps, 4, Limits(builder, limits))[0]
    store(builder, in_order(builder, results), to, align=1)


def _steps(builder: Builder, totals: list[Value], parameters: _Constants) -> Value:
    """Scale raised int32 to steps of the result, see ``fixed_point.rescaled``."""
    shifted = []
    for total in totals:
        above = _upper(builder, total, parameters.long("multiplier"), parameters.long("addend"))
        rounds_up = builder.lshr(total, in_all(31))
        shifted.append(builder.ashr(builder.add(above, rounds_up), parameters.word("bits")))
    return gather(builder, shifted)


def _many(builder: Builder, address: Value) -> Value:
    """Load 64 bytes."""
    return load(builder, MANY, address, align=1)


def _looked_up(builder: Builder, index: Value, table: Value, offset: int) -> Value:
    """Look up each of 64 bytes in a table of 256 bytes, ``offset`` bytes behind an address."""
    quarters = []
    for k in range(4):
        quarters.append(load(builder, MANY, table, offset + 64 * k, align=1))
        quarters[-1].set_metadata("invariant.load", builder.module.add_metadata([]))
    lower, upper = (_of_two(builder, index, *quarters[k : k + 2]) for k in (0, 2))
    is_upper = builder.icmp_signed("<", index, ir.Constant(MANY, [0] * 64))
    return builder.select(is_upper, upper, lower)


def _of_two(builder: Builder, x: Value, first: Value, second: Value) -> Value:
    """Select bytes of two vectors by the lowest 7 bits of each byte of a third: ``vpermi2b``."""
    kind = ir.FunctionType(MANY, [MANY] * 3)
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [first, x, second])
