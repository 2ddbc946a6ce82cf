"""Elementary functions: minimax polynomials and fractions (of least largest error).

Errors are stated in units of the last place (ulp) against double precision, for machines with a
fused multiply-add; without, that of tanh is 6. NaN gives NaN; infinities and denormals give what
they should.
"""

from __future__ import annotations

import math

from luciole.kernels.formulas.algebra import ROUNDING, N, shared

LOG2 = (0.693359375, -2.12194440e-4)
"""log 2 as a number of 9 bits, so that its multiples are exact, and the rest (as in Cephes)."""

EXP = (0.49999994, 0.166665211, 0.0416683890, 0.00836871751, 0.00138145965)
"""(e^r - 1 - r) / r^2 for r between -log(2) / 2 and log(2) / 2."""

TANH_LIMIT = 9.02
"""Above, 1 is the nearest float to tanh."""

TANH = (1.0, 0.133826345, 0.00349740079, 2.06348759e-05, 1.33823832e-08)
TANH_DIVISOR = (1.0, 0.467159569, 0.025884131, 0.000328842754, 7.78962487e-07)
"""tanh(x) / x is the fraction of these two polynomials in x^2."""

LOGISTIC_LIMIT = 18.0
"""Above, 1 is the nearest float to the logistic function."""

LOG_LOW = (0.333333313, -0.250008225, 0.200012267, -0.166233554, 0.142017603, -0.131601974)
LOG = (*LOG_LOW, 0.127615631, -0.0763443783)
"""(log(1 + r) - r + r^2 / 2) / r^3 for 1 + r between sqrt(1/2) and sqrt(2)."""

GELU_LIMIT = 5.4
"""Below its negative, what is left of a number is less than 2e-7, and taken for 0."""

ERF = (0.797884524, 0.0660582557, 0.00925789215, 0.000321384345, 1.26473378e-05, 4.71820307e-08)
ERF_DIVISOR = (1.0, 0.249458209, 0.028179951, 0.0018386388, 7.11718312e-05, 1.21982066e-06)
"""erf(x / sqrt 2) / x is the fraction of these two polynomials in x^2."""

SQRT_HALF, SMALLEST_NORMAL = math.sqrt(0.5), 2.0**-126

MANTISSA = 23
"""Bits of a float below its exponent."""


def _reduced(x: N) -> tuple[N, N]:
    """Reduce x = n log 2 + r, r as small as can be, to n plus ``ROUNDING``, and r. The product is
    taken off in two parts, as by Cody and Waite (Software Manual for the Elementary Functions,
    1980).
    """
    shifted = x.times_plus(1 / math.log(2), ROUNDING)
    n = shifted - ROUNDING
    return shifted, n.times_plus(-LOG2[1], n.times_plus(-LOG2[0], x))


@shared
def exp(x: N) -> N:
    """Compute e^x to 1 ulp."""
    return exp_below(x.at_most(89.0))


@shared
def exp_below(x: N) -> N:
    """Compute e^x for numbers of at most 89."""
    shifted, r = _reduced(x.at_least(-104.0))
    return r.polynomial((1.0, 1.0, *EXP)).times_power(shifted)


@shared
def log(x: N) -> N:
    """Compute the natural logarithm to 1 ulp; -infinity of 0, NaN of negative numbers."""
    return x.where_normal(_log_of_normal, _log_of_any)


def _log_of_any(x: N) -> N:
    tiny = x.compared("<", SMALLEST_NORMAL)
    larger = (x * 2.0**MANTISSA).where(tiny, x)
    y = _log_of_normal(larger, x.number(MANTISSA).where(tiny, 0.0))
    y = y.where(x.compared("<", math.inf), x).where(x.compared(">", 0.0), math.nan)
    return x.number(-math.inf).where(x.compared("==", 0.0), y)


def _log_of_normal(x: N, doubled: N | float = 0.0) -> N:
    """Compute the logarithm of normal numbers that were doubled ``doubled`` times."""
    mantissa, exponent = x.apart(SQRT_HALF)
    r, n = mantissa - 1.0, exponent - doubled
    small = (r * r).times_plus(r.polynomial((-0.5, *LOG)), n * LOG2[1])
    return n.times_plus(LOG2[0], small + r)


@shared
def tanh(x: N) -> N:
    """Compute the hyperbolic tangent to 4 ulp."""
    x = x.at_least(-TANH_LIMIT).at_most(TANH_LIMIT)
    square = x * x
    return x * square.polynomial(TANH) / square.polynomial(TANH_DIVISOR)


@shared
def logistic(x: N) -> N:
    """Compute e^x / (1 + e^x) to 3 ulp, denormals too."""
    power = exp_below(x.at_most(LOGISTIC_LIMIT))
    return power / (power + 1.0)


@shared
def elu(x: N) -> N:
    """Compute x, or e^x - 1 where it is negative, to 2 ulp."""
    shifted, r = _reduced(x.at_least(-18.0).at_most(0.0))
    scale = x.number(1.0).times_power(shifted)
    less_one = (r * r).times_plus(r.polynomial(EXP), r)  # e^r - 1
    return scale.times_plus(less_one, scale - 1.0).where(x.compared("<", 0.0), x)


@shared
def gelu(x: N) -> N:
    """Compute x (1 + erf(x / sqrt 2)) / 2; the error is at most 3e-7 of the larger of 1 and the
    size of x.
    """
    inside = x.at_least(-GELU_LIMIT).at_most(GELU_LIMIT)
    square = inside * inside
    erf = inside * square.polynomial(ERF) / square.polynomial(ERF_DIVISOR)
    share = erf.times_plus(0.5, 0.5).where(x.compared(">", -GELU_LIMIT), 0.0)
    return x * share


@shared
def gelu_by_tanh(x: N) -> N:
    """Compute x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which is x logistic(2 ...); the
    error is at most 3e-7 of the larger of 1 and the size of x.
    """
    cubic = (x * x).times_plus(0.044715, 1.0) * x
    return x * logistic(cubic * (2 * math.sqrt(2 / math.pi)))


@shared
def hard_swish(x: N) -> N:
    """Compute x min(max(x + 3, 0), 6) / 6 to 1 ulp."""
    return x * (x + 3.0).at_least(0.0).at_most(6.0) * (1 / 6)


_WHOLE = 2.0**23
"""Numbers from here on have no fraction: added to smaller ones, it leaves no room for theirs."""


def nearest(x: N) -> N:
    """Round to the nearest whole number, halves to even ones."""
    size = x.where(x.compared(">=", 0.0), -x)
    whole = ((size + _WHOLE) - _WHOLE).where(size.compared("<", _WHOLE), size)
    signed = (-whole).where(x.compared("<", 0.0), whole)
    return x.where(x.compared("==", 0.0), signed)
