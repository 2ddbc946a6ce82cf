"""Formulas on 16 floats at once, written as on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Builder, Value
from luciole.kernels.jit.processor import features
from luciole.kernels.jit.vector.vectors import FLOATS, FMA, INTS, LANES, of_llvm

ROUNDING = 12582912.0 + 254
"""1.5 2^23: what is added to it becomes an integer, found in the lowest bits of the sum; and twice
the bias of exponents, so that half of these bits is an exponent.
"""


@dataclass(frozen=True)
class Lanes:
    """16 floats while a kernel is compiled: an LLVM vector and the builder that goes on with it.

    Comparisons give LLVM's vectors of truth values, all false for NaN.
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

    def __radd__(self, other: float) -> Lanes:
        return self.number(other) + self

    def __rsub__(self, other: float) -> Lanes:
        return self.number(other) - self

    def __rmul__(self, other: float) -> Lanes:
        return self.number(other) * self

    def __rtruediv__(self, other: float) -> Lanes:
        return self.number(other) / self

    def __neg__(self) -> Lanes:
        return self.of(self.builder.fneg(self.value))

    def __abs__(self) -> Lanes:
        return self.of(of_llvm(self.builder, "llvm.fabs.v16f32", self.value))

    def sqrt(self) -> Lanes:
        """Compute the square root, correctly rounded."""
        return self.of(of_llvm(self.builder, "llvm.sqrt.v16f32", self.value))

    def times_plus(self, factor: Lanes | float, summand: Lanes | float) -> Lanes:
        """Compute self * factor + summand, with one rounding where the machine can."""
        vectors = self.value, self._vector(factor), self._vector(summand)
        return self.of(of_llvm(self.builder, FMA, *vectors))

    def compared(self, sign: str, other: Lanes | float) -> Value:
        """Compare with < or another of LLVM's signs, lane by lane; false for NaN."""
        return self.builder.fcmp_ordered(sign, self.value, self._vector(other))

    def where(self, mask: Value, other: Lanes | float) -> Lanes:
        """Select self where the mask is true, ``other`` elsewhere."""
        return self.of(self.builder.select(mask, self.value, self._vector(other)))

    def at_least(self, low: Lanes | float) -> Lanes:
        """Select the larger of both; NaN stays NaN."""
        return self.of(self._vector(low)).where(self.compared("<", low), self)

    def at_most(self, high: Lanes | float) -> Lanes:
        """Select the smaller of both; NaN stays NaN."""
        return self.of(self._vector(high)).where(self.compared(">", high), self)

    def bits(self) -> Value:
        """Return the lanes' bit patterns as 16 integers of 32 bits."""
        return self.builder.bitcast(self.value, INTS)

    def of_bits(self, bits: Value) -> Lanes:
        """Make the floats with these bit patterns."""
        return self.of(self.builder.bitcast(bits, FLOATS))

    def polynomial(self, coefficients: Sequence[float]) -> Lanes:
        """Compute c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule."""
        sum_ = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            sum_ = sum_.times_plus(self, coefficient)
        return sum_


def integers(number: int) -> Value:
    """Broadcast an integer of 32 bits to every lane."""
    return ir.Constant(INTS, [number] * LANES)


SCALES = "avx512f" in features()
"""Whether the machine has ``scaled``."""


def scaled(x: Lanes, n: Lanes) -> Lanes:
    """Compute x 2^n of whole numbers n, rounded once: denormals and infinity are reached, and take
    no longer: ``vscalefps``. Needs AVX-512.
    """
    mask, rounding = ir.Constant(ir.IntType(LANES), -1), ir.Constant(ir.IntType(32), 4)
    args = [x.value, n.value, x.value, mask, rounding]
    kind = ir.FunctionType(FLOATS, [a.type for a in args])
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    return x.of(x.builder.call(cgutils.get_or_insert_function(x.builder.module, kind, name), args))


def exponential(x: Lanes, bits: Value) -> Lanes:
    """Make the powers of two whose biased exponents stand in the lowest 8 of these bits, bit 8
    being 0.
    """
    return x.of_bits(x.builder.shl(bits, integers(23)))
