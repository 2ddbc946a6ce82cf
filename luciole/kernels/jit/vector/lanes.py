"""Formulas on 16 floats at once: LLVM's reader of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.formulas.algebra import ROUNDING, NamedFunction, Number
from luciole.kernels.jit.emits import Builder, Value
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.vector.vectors import FLOATS, FMA, INTS, LANES, of_llvm

MANTISSA = 23
"""Bits of a float below its exponent."""

SMALLEST_BITS, INFINITE_BITS = 1 << MANTISSA, 0xFF << MANTISSA
"""The bit patterns of the smallest normal number and of infinity."""


@dataclass(frozen=True)
class Lanes(Number):
    """16 floats while a kernel is compiled: an LLVM vector and the builder that goes on with it.
    Truth values are LLVM's vectors of these.
    """

    builder: Builder
    value: Value

    def of(self, value: Value) -> Lanes:
        """Wrap another LLVM vector in the same place of a program."""
        return Lanes(self.builder, value)

    def number(self, number: float) -> Lanes:
        """Broadcast a number to every lane."""
        return self.of(ir.Constant(FLOATS, [number] * LANES))

    def _vector(self, other: Lanes | float) -> Value:
        return other.value if isinstance(other, Lanes) else self.number(other).value

    def __add__(self, other: Lanes | float) -> Lanes:
        return self.of(self.builder.fadd(self.value, self._vector(other)))

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self.of(self.builder.fsub(self.value, self._vector(other)))

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self.of(self.builder.fmul(self.value, self._vector(other)))

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self.of(self.builder.fdiv(self.value, self._vector(other)))

    def __neg__(self) -> Lanes:
        return self.of(self.builder.fneg(self.value))

    def __abs__(self) -> Lanes:
        return self.of(of_llvm(self.builder, "llvm.fabs.v16f32", self.value))

    def sqrt(self) -> Lanes:
        """Compute the square root, correctly rounded."""
        return self.of(of_llvm(self.builder, "llvm.sqrt.v16f32", self.value))

    def times_plus(self, factor: Lanes | float, summand: Lanes | float) -> Lanes:
        """Compute self * factor + summand, with one rounding where the machine can."""
        x, y, z = self.value, self._vector(factor), self._vector(summand)
        return self.of(of_llvm(self.builder, FMA, x, y, z))

    def compared(self, sign: str, other: Lanes | float) -> Lanes:
        """Compare lane by lane; false for NaN."""
        return self.of(self.builder.fcmp_ordered(sign, self.value, self._vector(other)))

    def where(self, mask: Lanes, other: Lanes | float) -> Lanes:
        """Select self where the mask is true, ``other`` elsewhere."""
        return self.of(self.builder.select(mask.value, self.value, self._vector(other)))

    def bits(self) -> Value:
        """Return the lanes' bit patterns as 16 integers of 32 bits."""
        return self.builder.bitcast(self.value, INTS)

    def of_bits(self, bits: Value) -> Lanes:
        """Make the floats with these bit patterns."""
        return self.of(self.builder.bitcast(bits, FLOATS))

    def times_power(self, shifted: Lanes) -> Lanes:
        """Compute self 2^n, rounded once. Without an instruction for it 2^n is the product of two
        powers of two.
        """
        if SCALES:
            return _scaled(self, shifted - ROUNDING)
        build, bits = self.builder, shifted.bits()
        half = build.ashr(bits, _integers(1))
        return self * self._exponential(half) * self._exponential(build.sub(bits, half))

    def _exponential(self, bits: Value) -> Lanes:
        """Make the powers of two whose biased exponents stand in the lowest 8 of these bits, bit 8
        being 0.
        """
        return self.of_bits(self.builder.shl(bits, _integers(MANTISSA)))

    def power(self) -> Lanes:
        """Clear all bits but those of the exponent."""
        return self.of_bits(self.builder.and_(self.bits(), _integers(INFINITE_BITS)))

    def apart(self, root: float) -> tuple[Lanes, Lanes]:
        """Subtract the exponent above ``root`` from the bits."""
        build, bits = self.builder, self.bits()
        exponent = build.ashr(build.sub(bits, self.number(root).bits()), _integers(MANTISSA))
        mantissa = self.of_bits(build.sub(bits, build.shl(exponent, _integers(MANTISSA))))
        return mantissa, self.of(build.sitofp(exponent, FLOATS))

    def where_normal(
        self, formula: Callable[[Lanes], Lanes], general: Callable[[Lanes], Lanes]
    ) -> Lanes:
        """Branch: one formula or the other for all lanes."""
        build = self.builder
        above = build.sub(self.bits(), _integers(SMALLEST_BITS))
        special = build.icmp_unsigned(">=", above, _integers(INFINITE_BITS - SMALLEST_BITS))
        mask = build.bitcast(special, ir.IntType(LANES))
        some = build.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0))
        results = []
        with build.if_else(some, likely=False) as (rarely, mostly):
            for case, chosen in ((rarely, general), (mostly, formula)):
                with case:
                    results.append((chosen(self).value, build.block))
        result = build.phi(FLOATS)
        for value, block in results:
            result.add_incoming(value, block)
        return self.of(result)

    def called(self, function: NamedFunction) -> Lanes:
        """Write the function's own instructions: kernels call nothing."""
        return function(self)


def _integers(number: int) -> Value:
    """Broadcast an integer of 32 bits to every lane."""
    return ir.Constant(INTS, [number] * LANES)


SCALES = has("avx512f")
"""Whether the machine has ``_scaled``."""


def _scaled(x: Lanes, n: Lanes) -> Lanes:
    """Compute x 2^n of whole numbers n, rounded once: denormals and infinity are reached, and take
    no longer: ``vscalefps``. Needs AVX-512.
    """
    mask, rounding = ir.Constant(ir.IntType(LANES), -1), ir.Constant(ir.IntType(32), 4)
    args = [x.value, n.value, x.value, mask, rounding]
    kind = ir.FunctionType(FLOATS, [a.type for a in args])
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    return x.of(x.builder.call(cgutils.get_or_insert_function(x.builder.module, kind, name), args))
