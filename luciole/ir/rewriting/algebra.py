"""Read what graphs of arithmetic operators compute as polynomials, however it is spelled.

x (x + 1), x^2 + x, SQUARE(x) + x and POW(x, 2) - NEG(x) are one polynomial: a composite is found by
what it computes, not by the order in which a converter wrote it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.ir.op import Op
from luciole.ir.ops.elementwise_binary import Add, Div, Mul, Pow, SquaredDifference, Sub
from luciole.ir.ops.elementwise_unary import Neg, Rsqrt, Sqrt, Square
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, TensorType

Monomial = frozenset[tuple[Value, float]]
"""A product of tensors to powers; the empty one is 1. A power of 0 stays: x / x is not 1 at 0."""
Coefficient = NDArray[np.float64]
Polynomial = dict[Monomial, Coefficient]
"""A sum of products; coefficients are constants of any shape, which stretch to each other."""

ONE: Monomial = frozenset()
_MOST_TERMS, _MOST_STEPS, _HIGHEST_POWER = 16, 64, 4
_CLOSE = 5e-6
"""How far a coefficient may be off, relatively: the constants of files are rounded to float32."""
_ARITHMETIC = (Add, Sub, Mul, Div, Pow, SquaredDifference, Neg, Rsqrt, Sqrt, Square)


class _TooLongError(Exception):
    """There is no short polynomial."""


def monomial(*powers: Value | tuple[Value, float]) -> Monomial:
    """Write a product: values to the power of 1, or pairs of a value and its power."""
    return frozenset(one if isinstance(one, tuple) else (one, 1.0) for one in powers)


def expand(of: Value | Op, atoms: Collection[Value] = ()) -> Polynomial | None:
    """Write a value, or what an operator computes before its activation, as a polynomial in
    ``atoms`` and in whatever no arithmetic operator computes; None where that becomes long.
    """
    try:
        expansion = _Expansion(atoms)
        return expansion.of(of) if isinstance(of, Value) else expansion.of_operator(of)
    except _TooLongError:
        return None


def equals(polynomial: Polynomial | None, terms: dict[Monomial, float]) -> bool:
    """Return whether a polynomial has these terms with these coefficients and no others."""
    if polynomial is None or polynomial.keys() != terms.keys():
        return False
    return all(
        bool(np.allclose(polynomial[product], number, rtol=_CLOSE, atol=0))
        for product, number in terms.items()
    )


def computed_from(value: Value, most: int = _MOST_STEPS) -> Iterator[Value]:
    """List a value and those that arithmetic operators compute it from, the nearest first."""
    waiting, seen = [value], {value}
    while waiting and len(seen) <= most:
        current = waiting.pop(0)
        yield current
        op = _arithmetic(current)
        for operand in () if op is None else op.operands:
            if operand is not None and not operand.is_constant and operand not in seen:
                seen.add(operand)
                waiting.append(operand)


def _arithmetic(value: Value) -> Op | None:
    """Find the operator that computes a value where it is arithmetic on floats and nothing more."""
    op = value.producer.op if value.producer is not None else None
    if op is None or not isinstance(op, _ARITHMETIC) or value.dtype != TensorType.FLOAT32:
        return None
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    return op if activation == ActivationFunctionType.NONE else None


class _Expansion:
    """The polynomials of values that were met."""

    def __init__(self, atoms: Collection[Value]) -> None:
        self._atoms = frozenset(atoms)
        self._known: dict[Value, Polynomial] = {}
        self._steps = 0

    def of(self, value: Value) -> Polynomial:
        if value not in self._known:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise _TooLongError
            self._known[value] = self._expanded(value)
        return self._known[value]

    def _expanded(self, value: Value) -> Polynomial:
        atom: Polynomial = {monomial(value): np.ones(())}
        if value in self._atoms:
            return atom
        if value.dtype == TensorType.FLOAT32 and (data := value.data) is not None:
            return {ONE: data.astype(np.float64)}
        op = _arithmetic(value)
        if op is None:
            return atom
        result = self._computed(op)
        return atom if result is None else result

    def of_operator(self, op: Op) -> Polynomial | None:
        return self._computed(op) if isinstance(op, _ARITHMETIC) else None

    def _computed(self, op: Op) -> Polynomial | None:
        """Compute with polynomials what an operator does with numbers; None where it cannot be."""
        values = [value for value in op.operands if value is not None]
        if isinstance(op, Sqrt | Rsqrt):
            return _root(values[0], 0.5 if isinstance(op, Sqrt) else -0.5)
        if isinstance(op, Pow):
            return self._power(*values)
        first, second = self.of(values[0]), self.of(values[-1])
        if isinstance(op, Add):
            return _sum(first, second)
        if isinstance(op, Sub):
            return _sum(first, _times(second, -1))
        if isinstance(op, Neg):
            return _times(first, -1)
        if isinstance(op, SquaredDifference):
            first = second = _sum(first, _times(second, -1))
        if isinstance(op, Div):
            return _product(first, _inverse(second) or {monomial((values[-1], -1.0)): np.ones(())})
        return _product(first, second)

    def _power(self, base: Value, exponent: Value) -> Polynomial | None:
        data = exponent.data
        if data is None or data.size != 1:
            return None
        power = float(data.reshape(-1)[0])
        if power in (0.5, -0.5):
            return _root(base, power)
        if power not in range(1, _HIGHEST_POWER + 1):
            return None
        result = factor = self.of(base)
        for _ in range(int(power) - 1):
            result = _product(result, factor)
        return result


def _root(value: Value, power: float) -> Polynomial:
    return {monomial((value, power)): np.ones(())}


def _sum(first: Polynomial, second: Polynomial) -> Polynomial:
    return _gathered([*first.items(), *second.items()])


def _times(polynomial: Polynomial, number: float) -> Polynomial:
    return {product: np.asarray(number * factor) for product, factor in polynomial.items()}


def _product(first: Polynomial, second: Polynomial) -> Polynomial:
    return _gathered(
        (_joined(one, other), _multiplied(a, b))
        for one, a in first.items()
        for other, b in second.items()
    )


def _multiplied(one: Coefficient, other: Coefficient) -> Coefficient:
    try:
        return np.asarray(one * other)
    except ValueError as error:  # shapes that no runtime takes either
        raise _TooLongError from error


def _joined(one: Monomial, other: Monomial) -> Monomial:
    powers = dict(one)
    for value, power in other:
        powers[value] = powers.get(value, 0) + power
    return frozenset(powers.items())


def _inverse(polynomial: Polynomial) -> Polynomial | None:
    """Compute 1 / a product; None for a sum, and where a coefficient is 0."""
    if len(polynomial) != 1:
        return None
    ((product, factor),) = polynomial.items()
    if not factor.all():
        return None
    return {frozenset((value, -power) for value, power in product): np.asarray(1 / factor)}


def _gathered(terms: Iterable[tuple[Monomial, Coefficient]]) -> Polynomial:
    result: Polynomial = {}
    for product, factor in terms:
        try:
            result[product] = np.asarray(result[product] + factor) if product in result else factor
        except ValueError as error:  # shapes that no runtime takes either
            raise _TooLongError from error
    result = {product: factor for product, factor in result.items() if factor.any()}
    if len(result) > _MOST_TERMS:
        raise _TooLongError
    return result
