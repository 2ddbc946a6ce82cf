"""Layers over a sequence in both directions: the input of each, and their results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array
from luciole.ir.recurrent import WAYS

Run = Callable[[str, Array, "Array | None"], Array]
"""Outputs [time, batch, outputs] of one direction, of its steps and the auxiliary input's, all as
that direction meets them.
"""


def run_both(
    run: Run, x: Array, other: Array | None, *, meets: bool, time_major: bool, merged: bool
) -> tuple[Array, ...]:
    """Run both directions; return their results, or the one of both together, laid out as the input
    is.

    ``meets`` says that there are weights for the auxiliary input; where there are none it is the
    input of the second direction.
    """
    steps = x if time_major else x.swapaxes(0, 1)
    others = other if other is None or time_major else other.swapaxes(0, 1)
    results = []
    for direction in WAYS:
        mine = others if direction == "bw" and others is not None and not meets else steps
        beside = others if meets else None
        turn = slice(None, None, -1 if direction == "bw" else 1)
        outputs = run(direction, mine[turn], None if beside is None else beside[turn])[turn]
        results.append(outputs if time_major else outputs.swapaxes(0, 1))
    if merged:
        return (np.concatenate(results, axis=2),)
    return tuple(np.ascontiguousarray(a) for a in results)
