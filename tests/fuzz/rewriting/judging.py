"""How far outputs may lie from others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from luciole.ir import Array
from tests.fuzz.rewriting.forms import Outputs
from tests.fuzz.rewriting.schemes import Plain

AS_SIMULATED = 4.0
"""How many times as large as the simulation's error a file's may be, in power: 6 dB."""
AS_PLAIN = 10.0
"""How many times as large as that of plain rounding: 10 dB."""
ENOUGH = 40.0
ENOUGH_PER_BIT = 6.0
"""Decibels beyond which plain rounding asks for no more, in all and per bit of few weights or few
inputs: it may be closer by luck where outputs are few numbers.
"""
CLOSE = 45.0
"""Decibels beyond which nothing asks for more, as in a proof."""
AS_EVEN = 10.0
"""How many times as large as that of the same function with even channels: 10 dB."""
STEPS = 1.0
"""How many steps of an output are no error at all."""
FLOATS = 1e-4
ROUNDED = 1e-2
"""How far two runtimes' floats may be apart, of the largest number; and where layers round what
they read, which another order of sums tips over.
"""
_SMALLEST = 1e-5
"""What is no error at all, of the largest number."""

Powers = list[float]


def powers(outputs: Outputs, floats: Outputs) -> Powers:
    """Compute the mean squared error of each output [records, ...], the records left out in which a
    comparison tips over, or a softmax: the quarter with the largest errors.
    """
    return [_typical(a - b) for a, b in zip(outputs, floats, strict=True)]


def _typical(errors: Array) -> float:
    rows = np.square(errors.reshape(len(errors), -1), dtype=np.float64).mean(1)
    return float(np.sort(rows)[: -(len(rows) // 4) or None].mean())


def enough(errors: Powers, floats: Outputs, plain: Plain) -> Powers:
    """Raise errors that are smaller than anybody asks for of weights and inputs of so many bits."""
    bits = min(plain.weights or 8, plain.inputs or 8)
    least = 10 ** (-min(ENOUGH, ENOUGH_PER_BIT * bits) / 10)
    signals = [float(np.mean(np.square(a, dtype=np.float64))) for a in floats]
    return [max(error, least * s) for error, s in zip(errors, signals, strict=True)]


def decibels(error: float, floats: Array) -> float:
    """Compute the ratio of a signal to an error."""
    signal = float(np.mean(np.square(floats, dtype=np.float64)))
    return 10 * float(np.log10(max(signal, 1e-30) / max(error, 1e-30)))


def beyond(
    errors: Powers, others: Powers, times: float, floats: Outputs, steps: Sequence[float]
) -> Iterator[str]:
    """Say of which outputs the error is so many times as large as another one, and not small."""
    rows = zip(errors, others, floats, steps, strict=True)
    for place, (error, other, array, step) in enumerate(rows):
        slack = (STEPS * step) ** 2 + (_SMALLEST * _peak(array)) ** 2
        small = 10 ** (-CLOSE / 10) * float(np.mean(np.square(array, dtype=np.float64)))
        if not error <= max(times * other, small) + slack:
            ratios = [decibels(one, array) for one in (error, other)]
            yield f"output {place} has {ratios[0]:.1f} dB instead of {ratios[1]:.1f}"


def unequal(
    outputs: Outputs, others: Outputs, steps: Sequence[float] | None = None, floats: float = FLOATS
) -> Iterator[str]:
    """Say which outputs differ by more than a step of integers, or than floats may; NaN is where
    the other has it.
    """
    every = steps or [0.0] * len(outputs)
    for place, (a, b, step) in enumerate(zip(outputs, others, every, strict=True)):
        if a.shape != b.shape:
            yield f"output {place} is {a.shape} instead of {b.shape}"
            continue
        strange = np.isnan(a) != np.isnan(b)
        if strange.any():
            counts = [int(np.isnan(one).sum()) for one in (a, b)]
            yield f"output {place} has NaN in {counts[0]} places instead of {counts[1]}"
        finite = np.isfinite(a) & np.isfinite(b)
        apart = np.abs(np.subtract(a, b, where=finite, out=np.zeros(a.shape)))
        most = max(1.01 * step, floats * _peak(b))
        if apart.max(initial=0) > most:
            yield f"output {place} differs by {apart.max():.3g}, {most:.3g} is possible"


def infinite(outputs: Outputs, floats: Outputs) -> Iterator[str]:
    """Say which outputs are not finite where the float network's are."""
    for place, (a, b) in enumerate(zip(outputs, floats, strict=True)):
        count = int((~np.isfinite(a) & np.isfinite(b)).sum())
        if count:
            yield f"output {place} is not finite in {count} of {a.size} places"


def _peak(array: Array) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=1e-6))
