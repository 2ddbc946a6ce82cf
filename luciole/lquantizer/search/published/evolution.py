"""NSGA-II in generations, as the published search runs it (section 6.3.2).

Parents are drawn with equal chances, each gene is one of theirs, and one child in ten gets one gene
drawn anew; parents and their children compete for the places of the next parents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from luciole.lquantizer.search.nsga2 import best
from luciole.lquantizer.search.space import Candidate

MUTATION = 0.1
"""The chance that one gene of a child changes."""
PARENTS, OFFSPRING = 24, 24
"""In each generation: 48 together (section 7.1)."""
_TRIES = 200
"""Children that are drawn for one that was never evaluated."""

Choices = Sequence[Sequence[str]]
Evaluate = Callable[[Sequence[Candidate]], Mapping[Candidate, tuple[float, ...]]]
"""Evaluates candidates, none of them twice, and returns the objectives of those that ran."""


def crossed(
    one: Candidate, other: Candidate, choices: Choices, random: np.random.Generator
) -> Candidate:
    """Take each gene from one of two parents, and let one change at random now and then."""
    take = random.random(len(one)) < 0.5
    child = [a if t else b for a, b, t in zip(one, other, take, strict=True)]
    if random.random() < MUTATION:
        place = int(random.integers(len(child)))
        child[place] = str(random.choice(np.array(choices[place])))
    return tuple(child)


def children(
    parents: Sequence[Candidate],
    choices: Choices,
    count: int,
    known: Mapping[Candidate, tuple[float, ...]],
    random: np.random.Generator,
) -> list[Candidate]:
    """Draw children that were not evaluated before, as far as there are any."""
    drawn: dict[Candidate, None] = {}
    for _ in range(_TRIES * count):
        if len(drawn) == count:
            break
        one, other = (parents[int(i)] for i in random.integers(0, len(parents), 2))
        child = crossed(one, other, choices, random)
        if child not in known:
            drawn[child] = None
    return list(drawn)


def evolve(
    start: Sequence[Candidate],
    choices: Choices,
    evaluate: Evaluate,
    generations: int,
    seed: int = 0,
    parents: int = PARENTS,
    offspring: int = OFFSPRING,
) -> dict[Candidate, tuple[float, ...]]:
    """Evaluate the start and its children, and then generation after generation; returns all that
    was evaluated. Chance depends on the seed and the generation alone.
    """
    known = dict(evaluate(start))
    chosen = [one for one in start if one in known]
    for generation in range(generations):
        if not chosen:
            break
        random = np.random.default_rng((seed, generation))
        born = children(chosen, choices, offspring, known, random)
        evaluated = evaluate(born)
        if not born or not evaluated:
            break
        known |= evaluated
        pool = [*chosen, *(one for one in born if one in evaluated)]
        kept = best(np.array([known[one] for one in pool]), parents)
        chosen = [pool[place] for place in kept]
    return known
