"""Read normalizations as polynomials: x - mean, by the root of a moment, scaled and shifted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir.op import Op
from luciole.ir.ops.reduce import Mean
from luciole.ir.rewriting.algebra import ONE, Monomial, computed_from, equals, expand, monomial
from luciole.ir.rewriting.patterns import made_by
from luciole.ir.value import Value

_NEAR = 24
"""Tensors that are looked at."""
_TINY = 1e-7
"""Largest number beside a root that is as good as one below it: 1 / (s + e) is 1 / sqrt(s^2 + e^2)
but for rounding, unless s itself is so small that float32 has nothing but rounding there.
"""


@dataclass(frozen=True)
class Scaled:
    """``scale`` (x - mean) / sqrt(moment + epsilon) + ``shift``; None where there is no mean or no
    shift.
    """

    x: Value
    mean: Value | None
    moment: Value
    epsilon: float
    scale: NDArray[np.float64]
    shift: NDArray[np.float64] | None


def scaled_by_root(last: Op) -> Scaled | None:
    """Read the result of an operator before its activation as a normalization, None where it is
    none.
    """
    norms = (_read(last, x) for x in _candidates(last))
    return next((norm for norm in norms if norm is not None), None)


def _candidates(last: Op) -> Iterator[Value]:
    """List tensors that may be normalized: operands of means, and those near by."""
    operands = [value for value in last.operands if value is not None]
    for value in (near for operand in operands for near in computed_from(operand, _NEAR)):
        mean = made_by(value, Mean)
        if mean is not None:
            yield mean.input
            yield from list(computed_from(mean.input, _NEAR))[1:]


def _read(last: Op, x: Value) -> Scaled | None:
    terms = expand(last, (x,))
    if terms is None:
        return None
    shift = terms.pop(ONE, None)
    roots = {one for product in terms for one in product if one[1] in (-0.5, -1.0)}
    if len(roots) != 1 or not 1 <= len(terms) <= 2:
        return None
    ((value, power),) = roots
    root = (value, power)
    scale = terms.pop(monomial(x, root), None)
    below = _moment(value) if power == -0.5 else _moment_beside_root(value)
    if scale is None or below is None:
        return None
    moment, epsilon = below
    mean = _mean(terms, root, scale)
    if terms and mean is None:
        return None
    return Scaled(x, mean, moment, epsilon, scale, shift)


def _mean(
    terms: dict[Monomial, NDArray[np.float64]],
    root: tuple[Value, float],
    scale: NDArray[np.float64],
) -> Value | None:
    """Find the mean, the other factor of the term with the root."""
    for product, factor in terms.items():
        others = [value for value, power in product - {root} if power == 1.0]
        if len(product) == 2 and root in product and len(others) == 1:
            same = factor.shape == scale.shape and np.allclose(factor, -scale, rtol=1e-5, atol=0)
            return others[0] if same else None
    return None


def _moment(value: Value) -> tuple[Value, float] | None:
    """Split the operand of a root into a moment and a number that is added to it."""
    terms = expand(value)
    if terms is None:
        return None
    epsilon = terms.pop(ONE, np.zeros(()))
    products = list(terms)
    if len(products) != 1 or epsilon.size != 1 or not equals(terms, {products[0]: 1.0}):
        return None
    ((moment, power), *others) = products[0]
    return (moment, float(epsilon.reshape(-1)[0])) if power == 1.0 and not others else None


def _moment_beside_root(value: Value) -> tuple[Value, float] | None:
    """Split a divisor into the root of a moment and a tiny number beside it."""
    terms = expand(value)
    if terms is None:
        return None
    beside = terms.pop(ONE, np.zeros(()))
    products = list(terms)
    if len(products) != 1 or beside.size != 1 or not equals(terms, {products[0]: 1.0}):
        return None
    ((inside, power), *others) = products[0]
    tiny = float(beside.reshape(-1)[0])
    if others or power != 0.5 or not 0 <= tiny <= _TINY:
        return None
    below = _moment(inside)
    return None if below is None else (below[0], below[1] + tiny * tiny)
