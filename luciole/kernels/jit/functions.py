"""Elementary functions of 16 floats: polynomials and fractions fitted to the least largest error.

Errors are stated in units of the last place (ulp) against double precision, for machines with a
fused multiply-add. NaN gives NaN; infinities and denormals give what they should.
"""

from __future__ import annotations

import math

from luciole.kernels.jit.lanes import ROUNDING, Lanes, exponential, integers
from luciole.kernels.jit.vectors import FLOATS

LOG2 = (0.693359375, -2.12194440e-4)
"""log 2 as a number of 9 bits, so that its multiples are exact, and the rest (as in Cephes)."""

EXP = (0.49999994, 0.166665211, 0.0416683890, 0.00836871751, 0.00138145965)
"""(e^r - 1 - r) / r^2 for r between -log(2) / 2 and log(2) / 2."""

TANH_LIMIT = 9.02
"""Above, 1 is the nearest float to tanh."""

TANH = (1.0, 0.133826345, 0.00349740079, 2.06348759e-05, 1.33823832e-08)
TANH_DIVISOR = (1.0, 0.467159569, 0.025884131, 0.000328842754, 7.78962487e-07)
"""tanh(x) / x is the fraction of these two polynomials in x^2."""

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


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """x = n log 2 + r, r as small as can be: n plus ``ROUNDING``, and r."""
    shifted = x.times_plus(1 / math.log(2), ROUNDING)
    n = shifted - ROUNDING
    return shifted, n.times_plus(-LOG2[1], n.times_plus(-LOG2[0], x))


def _halves(shifted: Lanes) -> tuple[Lanes, Lanes]:
    """Two powers of two whose product is 2^n: so denormals and infinity are reached."""
    build, bits = shifted.builder, shifted.bits()
    half = build.ashr(bits, integers(1))
    return exponential(shifted, half), exponential(shifted, build.sub(bits, half))


def exp(x: Lanes) -> Lanes:
    """e^x to 1 ulp."""
    return exp_below(x.at_most(89.0))


def exp_below(x: Lanes) -> Lanes:
    """e^x for what is at most 89."""
    shifted, r = _reduced(x.at_least(-104.0))
    first, second = _halves(shifted)
    return r.polynomial((1.0, 1.0, *EXP)) * first * second


def log(x: Lanes) -> Lanes:
    """The natural logarithm to 1 ulp; -infinity of 0, NaN of negative numbers."""
    build = x.builder
    tiny = x.compared("<", SMALLEST_NORMAL)
    scaled = (x * 2.0**MANTISSA).where(tiny, x)
    root = x.number(SQRT_HALF).bits()
    exponent = build.ashr(build.sub(scaled.bits(), root), integers(MANTISSA))
    r = x.of_bits(build.sub(scaled.bits(), build.shl(exponent, integers(MANTISSA)))) - 1.0
    n = x.of(build.sitofp(exponent, FLOATS)) - x.number(MANTISSA).where(tiny, 0.0)
    square = r * r
    small = n.times_plus(LOG2[1], (square * r) * r.polynomial(LOG))
    y = n.times_plus(LOG2[0], square.times_plus(-0.5, small) + r)
    y = y.where(x.compared("<", math.inf), x).where(x.compared(">", 0.0), math.nan)
    return x.number(-math.inf).where(x.compared("==", 0.0), y)


def tanh(x: Lanes) -> Lanes:
    """The hyperbolic tangent to 4 ulp."""
    x = x.at_least(-TANH_LIMIT).at_most(TANH_LIMIT)
    square = x * x
    return x * square.polynomial(TANH) / square.polynomial(TANH_DIVISOR)


def logistic(x: Lanes) -> Lanes:
    """1 / (1 + e^-x) to 2 ulp, denormals too."""
    small = exp_below(-abs(x))
    return small.where(x.compared("<", 0.0), 1.0) / (small + 1.0)


def elu(x: Lanes) -> Lanes:
    """x, or e^x - 1 where it is negative, to 2 ulp."""
    shifted, r = _reduced(x.at_least(-18.0).at_most(0.0))
    first, second = _halves(shifted)
    scale = first * second
    less_one = (r * r).times_plus(r.polynomial(EXP), r)  # e^r - 1
    return scale.times_plus(less_one, scale - 1.0).where(x.compared("<", 0.0), x)


def gelu(x: Lanes) -> Lanes:
    """x (1 + erf(x / sqrt 2)) / 2; the error is at most 3e-7 of the larger of 1 and the size of
    x.
    """
    inside = x.at_least(-GELU_LIMIT).at_most(GELU_LIMIT)
    square = inside * inside
    erf = inside * square.polynomial(ERF) / square.polynomial(ERF_DIVISOR)
    share = erf.times_plus(0.5, 0.5).where(x.compared(">", -GELU_LIMIT), 0.0)
    return x * share


def gelu_by_tanh(x: Lanes) -> Lanes:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which is x logistic(2 ...); the error is
    at most 3e-7 of the larger of 1 and the size of x.
    """
    cubic = (x * x).times_plus(0.044715, 1.0) * x
    return x * logistic(cubic * (2 * math.sqrt(2 / math.pi)))


def hard_swish(x: Lanes) -> Lanes:
    """x min(max(x + 3, 0), 6) / 6 to 1 ulp."""
    return x * (x + 3.0).at_least(0.0).at_most(6.0) * (1 / 6)
