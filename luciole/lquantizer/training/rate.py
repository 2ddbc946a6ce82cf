"""Make sure that a fine-tuning does not learn too fast, by short trials on the model itself.

The usual rates (``settings.RATES``) are right for all kinds of networks that were tried, and may be
far too high for one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

STEPS = 100
"""Steps of a trial at the most."""
SHARE = 4
"""A trial is at most this fraction of the whole training, 1 / SHARE."""
CLASSES_MAY_LOSE = 0.3
"""Share of the loss that a trial may add where classes are told apart, which are told better long
before the loss is back. A hundred steps favour low rates: a training wins more back than they show
(ResNet-8 with 2 bits, 25 epochs on 1,000 images: 71.7 % at the rate at which a
trial neither loses nor gains, 68.6 % at the one at which it ends best; digits with 1 bit at 2e-3, a
mean of six seeds: 93.5 % where a trial may lose 0.3 of it, 92.5 % at 0.1)."""
_STEP = math.sqrt(10)
_LEAST = 1e-3


def steps_of(steps: int) -> int:
    """Return the number of steps of a trial, for a training of ``steps`` steps."""
    return max(1, min(STEPS, steps // SHARE))


def chosen_factor(trial: Callable[[float], float], start: float, may_lose: float = 0.0) -> float:
    """Choose the factor of the usual rates: 1, or less as long as a trial loses ground (the factor
    of weights; ``Adam.slow_down`` derives those of others).

    ``trial`` trains for a little while at a multiple of the usual rates and gives the loss on
    records held back, which was ``start`` before. Up to the share ``may_lose`` more of it is no
    loss of ground. Rates fall by half a power of ten.
    """
    factor = 1.0
    while factor > _LEAST and not trial(factor) <= (1 + may_lose) * start:
        factor /= _STEP
    return factor
