"""What formulas compute with: numbers that know neither LLVM nor C.

A formula is a function of such numbers, ``lambda x: x / (1.0 + abs(x))``. Each reader has a class
of them: ``jit.vector.lanes`` writes LLVM's instructions, ``portable.c_text`` C99.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Protocol, Self, TypeVar

import numpy as np

ROUNDING = 12582912.0 + 254
"""1.5 2^23: what is added to it becomes an integer, found in the lowest bits of the sum; and twice
the bias of exponents, so that half of these bits is an exponent.
"""


_PLAIN = (int, float, np.number)
"""What constants are written as."""


class Number(Protocol):
    """A float32 in a text that is being written, or several beside each other. Truth values are
    such numbers, too; comparisons are false for NaN.
    """

    def number(self, number: float) -> Self:
        """Write a constant."""

    def __add__(self, other: Self | float) -> Self: ...

    def __sub__(self, other: Self | float) -> Self: ...

    def __mul__(self, other: Self | float) -> Self: ...

    def __truediv__(self, other: Self | float) -> Self: ...

    def __neg__(self) -> Self: ...

    def __abs__(self) -> Self: ...

    def __radd__(self, other: float) -> Self:
        return self.number(other) + self

    def __rsub__(self, other: float) -> Self:
        return self.number(other) - self

    def __rmul__(self, other: float) -> Self:
        return self.number(other) * self

    def __rtruediv__(self, other: float) -> Self:
        return self.number(other) / self

    def sqrt(self) -> Self:
        """Compute the square root, correctly rounded."""

    def times_plus(self, factor: Self | float, summand: Self | float) -> Self:
        """Compute self * factor + summand, with one rounding where the machine can."""

    def compared(self, sign: str, other: Self | float) -> Self:
        """Compare with <, <=, >, >=, == or !=; false for NaN."""

    def where(self, mask: Self, other: Self | float) -> Self:
        """Select self where the mask is true, ``other`` elsewhere."""

    def times_power(self, shifted: Self) -> Self:
        """Compute self 2^n, rounded once, of whole numbers n from -150 to 129, given as their sums
        with ``ROUNDING``: denormals and infinity are reached.
        """

    def power(self) -> Self:
        """Return the power of two that a number of either sign begins with; infinity of infinity
        and NaN.
        """

    def apart(self, root: float) -> tuple[Self, Self]:
        """Take positive normal numbers apart: m 2^n with m from ``root`` to 2 ``root``, and n."""

    def where_normal(
        self, formula: Callable[[Self], Self], general: Callable[[Self], Self]
    ) -> Self:
        """Compute a formula that holds for positive normal numbers; where some are others,
        ``general``, which gives the same for these and holds for all numbers.
        """

    def called(self, function: NamedFunction) -> Self:
        """Compute a function that texts may hold once and call."""

    def at_least(self, low: Self | float) -> Self:
        """Select the larger of both; NaN stays NaN."""
        limit = self.number(low) if isinstance(low, _PLAIN) else low
        return limit.where(self.compared("<", low), self)

    def at_most(self, high: Self | float) -> Self:
        """Select the smaller of both; NaN stays NaN."""
        limit = self.number(high) if isinstance(high, _PLAIN) else high
        return limit.where(self.compared(">", high), self)

    def polynomial(self, coefficients: Sequence[float]) -> Self:
        """Compute c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule."""
        sum_ = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            sum_ = sum_.times_plus(self, coefficient)
        return sum_


N = TypeVar("N", bound=Number)


class Formula(Protocol):
    """A function of one number."""

    def __call__(self, x: N, /) -> N:
        """Compute it."""


class ParametricFormula(Protocol):
    """A function of one number and two parameters."""

    def __call__(self, x: N, a: N, b: N, /) -> N:
        """Compute it."""


class BinaryFormula(Protocol):
    """A function of two numbers."""

    def __call__(self, x: N, y: N, /) -> N:
        """Compute it."""


class NamedFunction(Formula, Protocol):
    """A formula that has a name of its own."""

    __name__: str


SHARED: dict[str, NamedFunction] = {}
"""Functions that texts hold once, by name."""


def shared(function: NamedFunction) -> NamedFunction:
    """Register a function that texts may hold once and call by its name."""
    SHARED[function.__name__] = function

    def called(x: N) -> N:
        return x.called(function)

    update_wrapper(called, function)
    return called
