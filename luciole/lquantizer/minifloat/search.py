"""Search the fewest bits of minifloats with which a network still answers alike.

The order is that of the published search: bits of mantissa are dropped as long as the answers
stay, for each number of bits of the exponent (FAT, Goncharenko et al., chapter on minifloats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.answers import answers_of, labels_for, scores_classes
from luciole.interpreter.records import Progress, Records, first_output
from luciole.ir import Array, Model
from luciole.ir.minifloat import Minifloat
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.minifloat.formats import Chosen, Part
from luciole.lquantizer.minifloat.rewrite import to_minifloats

SEARCHED = [(e, m) for e in (5, 4, 3, 2) for m in (7, 6, 5, 4, 3, 2)]
"""Bits of exponents and mantissas that are tried."""
_HOPELESS = 20.0
"""Points of answers beyond what is asked for, after which fewer bits of mantissa are not tried."""


Everywhere = Callable[[Minifloat], Chosen]
"""Gives all parts of a network the same bits."""


@dataclass(frozen=True)
class Tried:
    """Bits that were tried, and the points of answers that they change (or, with labels, lose)."""

    exponent: int
    mantissa: int
    drop: float

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return 1 + self.exponent + self.mantissa


class Judge:
    """Says what answers a network loses: against labels where there are some, else against the
    float network. The answers are those of the first output.
    """

    def __init__(self, model: Model, records: Records, labels: Array | None = None) -> None:
        self.model, self.records = model, records
        numbers = first_output(model, records)
        if not scores_classes(model.graph.outputs[0], numbers, labels):
            raise QuantizeError("a search needs a network whose first output scores classes")
        answers = answers_of(numbers)
        self._right = answers if labels is None else labels_for(labels, answers.shape)
        self._before = float(np.mean(answers == self._right))

    def drop(self, chosen: Chosen) -> float:
        """Count the points of answers that are lost; below 0 where more are right than before."""
        model = to_minifloats(self.model, chosen.by_value())
        answers = answers_of(first_output(model, self.records))
        return 100 * (self._before - float(np.mean(answers == self._right)))


def search(
    judge: Judge, everywhere: Everywhere, target: float, step: Progress
) -> tuple[list[Tried], Chosen]:
    """Try numbers of bits for the whole network; returns all that were tried, and the fewest bits
    that lose at most ``target`` points, of these the ones that lose least.

    Raises QuantizeError where all lose more.
    """
    tried = list(_tried(judge, everywhere, target, step))
    good = [t for t in tried if t.drop <= target]
    if not good:
        best = min(tried, key=lambda t: t.drop)
        raise QuantizeError(
            f"no minifloat loses at most {target:g} points: <{best.exponent},{best.mantissa}> "
            f"loses {best.drop:.2f}"
        )
    best = min(good, key=lambda t: (t.bits, t.drop))
    return tried, everywhere(Minifloat(best.exponent, best.mantissa))


def _tried(judge: Judge, everywhere: Everywhere, target: float, step: Progress) -> Iterator[Tried]:
    lost = dict.fromkeys((e for e, _ in SEARCHED), 0.0)
    for e, m in SEARCHED:
        if lost[e] <= target + _HOPELESS:
            lost[e] = judge.drop(everywhere(Minifloat(e, m)))
            yield Tried(e, m, lost[e])
        step(1)


def narrowed(judge: Judge, chosen: Chosen, target: float, step: Progress) -> Chosen:
    """Take bits of mantissa from single parts, those with most elements first, as long as at most
    ``target`` points are lost.
    """
    for part in sorted(chosen.parts, key=lambda part: -part.elements):
        while (narrower := _narrower(chosen, part)) and judge.drop(narrower) <= target:
            chosen = narrower
        step(1)
    return chosen


def _narrower(chosen: Chosen, part: Part) -> Chosen | None:
    """Take a bit of mantissa from a part, None where it is the last."""
    now = chosen.bits[part]
    if now.mantissa == 1:
        return None
    fewer = Minifloat(now.exponent, now.mantissa - 1)
    return Chosen(chosen.parts, {**chosen.bits, part: fewer}, chosen.spreads)
