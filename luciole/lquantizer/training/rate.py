"""Choose how fast a fine-tuning learns, by short trials on the model itself.

The usual rates (``settings.RATES``) are right for classifiers and far too high for some networks
that give back what they were given: an autoencoder with one bit lost more in its first epoch than
it won back later, and wanted a hundredth of its rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS = 100
"""Steps of a trial at the most."""
SHARE = 4
"""A trial is at most one part in so many of the whole training."""
_NEARLY = 0.8
"""Share of the best trial's gain that is enough: what is short favours rates that are low."""
_STEP = math.sqrt(10)
_LEAST = 1e-3


def steps_of(steps: int) -> int:
    """Say how many steps a trial has, of a training with so many."""
    return max(1, min(STEPS, steps // SHARE))


def chosen_factor(trial: Callable[[float], float], start: float) -> float:
    """Find what to multiply the usual rates by: 1, or less where that ends closer to the teacher
    (weights' rate; ``Adam.slow_down`` says how others follow).

    ``trial`` trains for a little while at a multiple of the usual rates and gives the loss on
    records held back, which was ``start`` before. Rates fall by half a power of ten as long as
    that helps, or until something does; of those that gain nearly as much as the best, the highest
    is chosen.
    """
    factor, best = 1.0, 1.0
    losses = {1.0: _finite(trial(1.0))}
    while factor > _LEAST:
        factor /= _STEP
        losses[factor] = _finite(trial(factor))
        if losses[factor] >= losses[best] and losses[best] < start:
            break
        if losses[factor] < losses[best]:
            best = factor
    gain = max(start - losses[best], 0.0)
    enough = losses[best] + (1 - _NEARLY) * gain
    return max(factor for factor, loss in losses.items() if loss <= enough)


def _finite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf
