"""Name what can go wrong while a model is quantized."""

import math
import os
from collections.abc import Iterable

import numpy as np

from luciole.ir import LucioleError
from luciole.ir.errors import ChoiceError, expect

_WHOLE = (int, np.integer)

MOST_WORKERS = max(16, 4 * (os.cpu_count() or 1))
"""Processes of a search: more than cores gain nothing, and thousands stop a machine."""


class QuantizeError(LucioleError, ValueError):
    """Settings, config or data that a quantization cannot use."""


class OptionsError(QuantizeError, ChoiceError):
    """An option has a value that there is not, or does not go with another one."""


def check_drop(target: float | None) -> None:
    """Refuse a target below 0 or without an end, in whatever unit."""
    expect(target, (float, int, np.number, type(None)), "target_drop: a number")
    if target is not None and not 0 <= target < math.inf:
        raise OptionsError(f"target_drop is {target}: 0 and more are possible")


def check_points(target: float | None) -> None:
    """Refuse more points, or percent, than there are."""
    if target is not None and target > 100:
        raise OptionsError(f"target_drop is {target}: 0 to 100 points are possible")


def check_seed(seed: int) -> None:
    """Refuse a seed that no generator takes."""
    expect(seed, _WHOLE, "seed: a whole number")
    if seed < 0:
        raise OptionsError(f"seed is {seed}: 0 and more are possible")


def check_at_least(options: object, least: int, names: Iterable[str]) -> None:
    """Refuse fields of options that are given and no whole numbers, or lower than they may be."""
    for name in names:
        number = getattr(options, name)
        expect(number, (*_WHOLE, type(None)), f"{name}: a whole number")
        if number is not None and number < least:
            raise QuantizeError(f"{name} is {number}: at least {least} is needed")


def check_workers(workers: int) -> None:
    """Refuse more processes than a machine takes."""
    expect(workers, _WHOLE, "workers: a whole number")
    if workers > MOST_WORKERS:
        raise QuantizeError(f"workers is {workers}, this machine takes {MOST_WORKERS}")
