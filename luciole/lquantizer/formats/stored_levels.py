"""Learn levels for weights that an operator reads as floats: its inputs stay as they are.

A row of a depthwise convolution has 9 weights: a basis for each would take more than its codes. So
rows of few weights share one, and each has a scale. Codes are rounded with regard to the outputs
where the second moments of what the rows meet are known (as in ``methods.weight_codes``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.learned_levels import sign_codes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.ops.levelsdecode import scaled_levels
from luciole.lquantizer.formats.levels import Samples, best_fit

FEW = 64
"""Weights of a row up to which rows share a basis."""
_ROUNDS, _PASSES = 5, 3
_DAMPING = 0.05
"""Added to the diagonals of second moments, as a share of their mean."""
_TINY = float(np.finfo(np.float32).tiny)


@dataclass
class StoredLevels:
    """Codes of rows of weights [o, n], bases [o, K] or one [1, K], scales [o] beside one, and
    offsets [o] where rows have some. Bases and offsets are FLOAT32, or INT8 where the weights are.
    """

    codes: NDArray[np.intp]
    basis: Array
    scales: NDArray[np.float32] | None = None
    offsets: Array | None = None

    @property
    def format(self) -> LearnedLevels:
        """The levels of each row."""
        return scaled_levels(self.basis, self.scales, len(self.codes), self.offsets)

    def values(self) -> NDArray[np.float64]:
        """Decode the weights: [o, n]."""
        return self.format.decode(self.codes)


def fit_stored(weights: Array, moments: Array | None, bits: int, seed: int = 0) -> StoredLevels:
    """Fit levels to rows of weights [o, n], given the second moments [o, n, n] of each row's
    inputs; without them every weight counts alike.
    """
    if weights.shape[1] > FEW:
        fit = best_fit(Samples.of(weights), bits, offset=False, restarts=1, seed=seed)
        own = StoredLevels(np.zeros(weights.shape, np.intp), fit.basis.astype(np.float32))
        own.codes = own.format.encode(weights)
        return own
    rows = weights.astype(np.float64)
    metric = _metric(rows, moments)
    stored = _shared(rows, bits, seed)
    for left in reversed(range(_ROUNDS)):
        for _ in range(_PASSES):
            _descend(rows, metric, stored)
        if left:
            _move_scales(rows, metric, stored)
            _move_basis(rows, metric, stored)
    return stored


def _shared(rows: NDArray[np.float64], bits: int, seed: int) -> StoredLevels:
    """Begin with the nearest levels of one basis for rows of the same size."""
    scales = np.maximum(np.sqrt(np.square(rows).mean(1)), _TINY).astype(np.float32)
    samples = Samples.of((rows / scales[:, None]).reshape(1, -1))
    basis = best_fit(samples, bits, offset=False, restarts=3, seed=seed).basis.astype(np.float32)
    stored = StoredLevels(np.zeros(rows.shape, np.intp), basis, scales)
    stored.codes = stored.format.encode(rows)
    return stored


def _metric(rows: NDArray[np.float64], moments: Array | None) -> NDArray[np.float64]:
    """Make the moments positive definite, and a row's output of them a signal of 1: channels count
    alike, however large what they meet is.
    """
    n = rows.shape[1]
    unscaled = np.broadcast_to(np.eye(n), (len(rows), n, n)) if moments is None else moments
    size = np.einsum("oii->o", unscaled) / n
    damped = unscaled + (_DAMPING * size + _TINY)[:, None, None] * np.eye(n)
    signal = np.einsum("oi,oij,oj->o", rows, damped, rows)
    return np.asarray(damped / np.where(signal > 0, signal, 1.0)[:, None, None])


def _descend(rows: NDArray[np.float64], metric: NDArray[np.float64], stored: StoredLevels) -> None:
    """Give each weight of every row in turn its best code, the others held."""
    levels, values = stored.format, stored.values()
    for i in range(rows.shape[1]):
        slope = np.einsum("on,on->o", metric[:, i], values - rows)
        targets = values[:, i] - slope / metric[:, i, i]
        stored.codes[:, i] = levels.encode(targets[:, None])[:, 0]
        values[:, i] = levels.decode(stored.codes[:, i : i + 1])[:, 0]


def _move_scales(
    rows: NDArray[np.float64], metric: NDArray[np.float64], stored: StoredLevels
) -> None:
    """Solve for the best scale of each row: s = q^T H w / q^T H q."""
    codes = scaled_levels(stored.basis, None, len(rows)).decode(stored.codes)
    weighted = np.einsum("oij,oj->oi", metric, codes)
    above, below = (np.einsum("oi,oi->o", weighted, other) for other in (rows, codes))
    solved = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    assert stored.scales is not None, "rows that share a basis have scales"
    stored.scales = np.asarray(np.where(solved > 0, solved, stored.scales), np.float32)


def _move_basis(
    rows: NDArray[np.float64], metric: NDArray[np.float64], stored: StoredLevels
) -> None:
    """Solve for the best basis of all rows: (sum B^T H B) a = sum B^T H w, B being scaled signs."""
    bits = stored.basis.shape[1]
    assert stored.scales is not None, "rows that share a basis have scales"
    signs = sign_codes(bits)[stored.codes] * stored.scales[:, None, None]
    weighted = np.einsum("oij,ojk->oik", metric, signs)
    left, right = np.einsum("oik,oil->kl", weighted, signs), np.einsum("oik,oi->k", weighted, rows)
    ridge = 1e-6 * np.trace(left) / bits + _TINY
    solved = np.linalg.solve(left + ridge * np.eye(bits), right + ridge * stored.basis[0])
    stored.basis = solved.astype(np.float32)[None]
