"""Evenly spaced levels, the uniform grid in the form of learned ones: each basis element is twice
the one before, so that 2^K levels lie one step apart.

A step s has the basis s / 2, s, 2 s, ...; without an offset the levels are the odd multiples of
half a step, as many on both sides of 0 (a mid-rise quantizer). The kernels of learned levels run
them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.lquantizer.formats.levels import Fit, Floats, Samples, levels_error

_SHARES = np.linspace(0.2, 1.0, 25)
"""Shares of the range of a row that levels may begin to reach."""
_TURNS = 8
"""Alternations of codes and steps; more changes nothing."""

_LEAST_SPREAD = 1e-9
"""Variance of codes below which they are all the same, but for rounding."""


def even_basis(steps: NDArray[np.floating], bits: int) -> Floats:
    """Write steps [...] as bases [..., bits]."""
    return np.asarray(np.asarray(steps)[..., None] * 2.0 ** np.arange(-1, bits - 1))


def is_even(basis: Floats) -> bool:
    """Check whether each element of bases [..., K], K > 1, is exactly twice the one before."""
    return basis.shape[-1] > 1 and bool(np.all(basis[..., 1:] == 2 * basis[..., :-1]))


def even_fit(samples: Samples, bits: int, offset: bool) -> Fit:
    """Fit a step, and with ``offset`` the middle of the levels, to each row: the least squared
    error of what several shares of its range lead to.
    """
    x = samples.values
    middle = x @ samples.weights / samples.weights.sum() if offset else np.zeros(len(x))
    below, above = middle - x.min(1), x.max(1) - middle
    if not offset:
        below = above = np.maximum(below, above)
    best: Fit | None = None
    for share in _SHARES:
        low, high = middle - share * below, middle + share * above
        fit = _settled(samples, low, high, bits, offset)
        better = np.ones(len(x), np.bool_) if best is None else fit.mse < best.mse
        best = _either(better, fit, best or fit)
    assert best is not None, "there are shares"
    return best


def _settled(samples: Samples, low: Floats, high: Floats, bits: int, offset: bool) -> Fit:
    """Alternate codes and steps, from levels between limits [rows] on."""
    most = 2**bits - 1
    step, centre = (high - low) / most, (high + low) / 2
    for _ in range(_TURNS):
        safe = np.where(step > 0, step, 1.0)[:, None]
        place = (samples.values - centre[:, None]) / safe + most / 2
        codes = np.clip(np.rint(place), 0, most) - most / 2
        step, centre = _solved(samples, codes, step, centre, offset)
    basis = even_basis(step, bits)
    return Fit(basis, centre, levels_error(samples, basis, centre))


def _solved(
    samples: Samples, codes: Floats, step: Floats, centre: Floats, offset: bool
) -> tuple[Floats, Floats]:
    """Solve for the step, and with ``offset`` the centre, of the least squared error: [rows] each,
    as they were where codes leave them open.
    """
    weights = samples.weights / samples.weights.sum()
    means = (codes @ weights, samples.targets @ weights) if offset else (0.0, 0.0)
    by_code = codes - np.reshape(means[0], (-1, 1))
    spread = np.square(by_code) @ weights
    along = (by_code * samples.targets) @ weights
    known = spread > _LEAST_SPREAD
    best = np.divide(along, spread, out=np.zeros_like(along), where=known)
    best = np.where(best > 0, best, step)
    return best, np.asarray(means[1] - best * means[0]) if offset else centre


def _either(first: NDArray[np.bool_], one: Fit, other: Fit) -> Fit:
    return Fit(
        np.where(first[:, None], one.basis, other.basis),
        np.where(first, one.offset, other.offset),
        np.where(first, one.mse, other.mse),
    )
