"""Rescale channels in front of minifloats that have a power of two for each tensor: what is far
below a tensor's largest number becomes subnormal, or 0.
"""

from __future__ import annotations

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size
from luciole.ir import Array, Model
from luciole.ir.minifloat import Minifloat
from luciole.lquantizer.network.minifloats import shifted
from luciole.lquantizer.network.rescale import (
    RULES,
    Floats,
    Pair,
    factors_of,
    judging_records,
    pairs_of,
    rescale,
)
from luciole.lquantizer.network.two_layers import Rounding


def even_minifloats(work: Model, records: Records, numbers: Minifloat) -> dict[str, Array]:
    """Rescale the channels between two layers of a float network, in place, where that brings their
    results closer to what they are, with all that is read and multiplied rounded.

    Returns the divisors of tensors' channels by name: [channels] each.
    """
    pairs = list(pairs_of(work.graph))
    if not pairs:
        return {}
    judges = judging_records(records)
    batch = batch_size(Interpreter(work), judges)

    def rounded(x: Array, _: Array | None = None) -> Array:
        return shifted(numbers, (x.reshape(-1), np.ones(x.size))).round(x)

    def judge(pair: Pair, tried: list[Floats], inputs: Array) -> list[float]:
        return Rounding(rounded, rounded, rounded, rounded).errors(pair, tried, inputs)

    return factors_of(rescale(work, pairs, judges, batch, list(RULES.values()), judge))
