"""Search the fewest bits of minifloats with which a network still answers alike.

The order is that of the published search: bits of mantissa are dropped as long as the answers
stay, for each number of bits of the exponent (FAT, Goncharenko et al., chapter on minifloats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from luciole.interpreter.records import Progress
from luciole.ir.minifloat import Minifloat
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.budget import taken_away
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.network.minifloats import Chosen, Part

EXPONENTS, _MANTISSAS = (5, 4, 3, 2), (7, 6, 5, 4, 3, 2)
"""Bits that are tried."""
_HOPELESS = 20.0
"""Points beyond the target, after which fewer bits of mantissa are not tried; none where a metric
has a unit of its own."""

Everywhere = Callable[[Minifloat], Chosen]
"""Gives all parts of a network the same bits."""


@dataclass(frozen=True)
class Tried:
    """Bits that were tried, and their losses in the unit of the judge."""

    exponent: int
    mantissa: int
    drop: float

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return 1 + self.exponent + self.mantissa


Drop = Callable[[Chosen], float]
"""Judges a network of minifloats."""


def search(
    judge: Judge, drop: Drop, everywhere: Everywhere, target: float, step: Progress
) -> tuple[list[Tried], Chosen]:
    """Try numbers of bits for the whole network; returns all that were tried, and the fewest bits
    that lose at most the target, of these the ones that lose least.

    Raises QuantizeError where all lose more.
    """
    limit = target + (0.0 if judge.metric else _HOPELESS)
    tried: list[Tried] = []
    for exponent in EXPONENTS:
        numbers = [Minifloat(exponent, mantissa) for mantissa in _MANTISSAS]
        costs = taken_away(numbers, lambda one: drop(everywhere(one)), limit)
        tried += [Tried(one.exponent, one.mantissa, lost) for one, lost in costs]
        step(1)
    good = [t for t in tried if t.drop <= target]
    if not good:
        best = min(tried, key=lambda t: t.drop)
        raise QuantizeError(
            f"no minifloat keeps to {target:g}: <{best.exponent},{best.mantissa}> has "
            f"{best.drop:.4g} {judge.unit}"
        )
    best = min(good, key=lambda t: (t.bits, t.drop))
    return tried, everywhere(Minifloat(best.exponent, best.mantissa))


def narrowed(drop: Drop, chosen: Chosen, target: float, step: Progress) -> Chosen:
    """Take bits of mantissa from single parts, those with most elements first, as long as the loss
    keeps to the target.
    """
    for part in sorted(chosen.parts, key=lambda part: -part.elements):
        for narrower, lost in taken_away(_narrower(chosen, part), drop, target):
            chosen = narrower if lost <= target else chosen
        step(1)
    return chosen


def _narrower(chosen: Chosen, part: Part) -> Iterator[Chosen]:
    """Take one bit of mantissa after the other from a part, but for the last."""
    now = chosen.bits[part]
    for mantissa in range(now.mantissa - 1, 0, -1):
        fewer = Minifloat(now.exponent, mantissa)
        yield Chosen(chosen.parts, {**chosen.bits, part: fewer}, chosen.spreads)
