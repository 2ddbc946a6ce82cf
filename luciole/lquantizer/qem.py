"""Fit bases to samples by quantization-error minimisation (QEM; LQ-Nets, Zhang et al. 2018, section
3.2).

Two steps alternate: each sample takes its nearest level, then each basis moves so that the levels
lie closer to their samples. A basis of K elements spans 2^K levels, so K numbers are learned for
each row of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from luciole.ir import codes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """How bases are fitted.

    ``gradient`` is the published update; ``least_squares`` solves for the best basis at once, with
    a ridge that holds directions which the codes leave open at their present value.
    """

    method: Literal["gradient", "least_squares"] = "gradient"
    initialisation: Literal["random", "greedy"] = "random"
    iterations: int = 60
    steps: int = 5
    """Gradient steps between two encodings."""
    learning_rate: float = 0.1
    penalty: float = 1e-3
    """L2 regularisation (lambda)."""
    ridge: float = 1e-6
    seed: int = 0


@dataclass(frozen=True)
class Samples:
    """Rows of numbers to fit, one basis per row.

    ``values`` [rows, n] decide the codes; ``targets`` [rows, n] are what the levels should be close
    to (the values themselves unless given); ``weights`` [n] say how often each column occurs.
    """

    values: Floats
    targets: Floats
    weights: Floats
    energy: Floats
    """Weighted mean of the squared targets of each row before any compression: [rows]."""

    @classmethod
    def of(cls, values: NDArray[np.floating]) -> Samples:
        """Every number counts once and is its own target."""
        wide = np.atleast_2d(np.asarray(values, np.float64))
        return cls(wide, wide, np.ones(wide.shape[1]), np.mean(wide**2, axis=1))

    @classmethod
    def compressed(
        cls,
        values: NDArray[np.floating],
        targets: NDArray[np.floating] | None = None,
        bins: int = 4096,
    ) -> Samples:
        """One row, compressed: equal values share a column, and more than ``bins`` of them become
        bins.

        A column's target is the mean of its samples' targets; nothing else of them matters for a
        fit.
        """
        x = np.asarray(values, np.float64).reshape(-1)
        t = x if targets is None else np.asarray(targets, np.float64).reshape(-1)
        unique, column = np.unique(x, return_inverse=True)
        if len(unique) > bins:
            low, high = unique[0], unique[-1]
            column = np.minimum(((x - low) / (high - low) * bins).astype(np.intp), bins - 1)
        count = np.bincount(column)
        used = count > 0
        mean_x, mean_t = (np.bincount(column, v)[used] / count[used] for v in (x, t))
        return cls(
            mean_x[None], mean_t[None], count[used].astype(np.float64), np.array([np.mean(t**2)])
        )


@dataclass(frozen=True)
class Fit:
    """Bases [rows, K] and their mean squared errors [rows]."""

    basis: Floats
    mse: Floats


def fit(samples: Samples, bits: int, settings: Settings, start: Floats | None = None) -> Fit:
    """Fit one basis of ``bits`` elements to each row; deterministic for a given seed.

    ``start`` [rows, bits] replaces the initialisation.
    """
    basis = _initial(samples, bits, settings) if start is None else np.array(start, np.float64)
    update = _least_squares if settings.method == "least_squares" else _gradient
    for _ in range(settings.iterations):
        previous = basis
        basis = update(samples, basis, settings)
        if np.allclose(basis, previous, rtol=1e-7, atol=1e-12):
            break
    return Fit(basis, _mse(samples, basis))


def _initial(samples: Samples, bits: int, settings: Settings) -> Floats:
    return (
        _greedy(samples, bits)
        if settings.initialisation == "greedy"
        else _random(samples, bits, settings)
    )


def _random(samples: Samples, bits: int, settings: Settings) -> Floats:
    """|normal| scaled to each row's root mean square: a basis far from the data's size never finds
    it.
    """
    generator = np.random.default_rng(settings.seed)
    scale = np.sqrt(_mean(samples, samples.values**2))
    return np.abs(generator.standard_normal((len(samples.values), bits))) * scale[:, None]


def _greedy(samples: Samples, bits: int) -> Floats:
    """Element by element, the mean magnitude of what the elements before left over."""
    rest = samples.values
    basis = np.empty((len(rest), bits))
    for k in range(bits):
        basis[:, k] = _mean(samples, np.abs(rest))
        rest = rest - np.where(rest > 0, 1.0, -1.0) * basis[:, k : k + 1]
    return basis


def _gradient(samples: Samples, basis: Floats, settings: Settings) -> Floats:
    """a <- a - lr / n * sum_i [((b_i, a) - x_i) b_i + lambda a], several times for one encoding."""
    count, total, signs = _statistics(samples, basis)
    n = samples.weights.sum()
    for _ in range(settings.steps):
        value = np.einsum("rlk,rk->rl", signs, basis)
        slope = np.einsum("rlk,rl->rk", signs, count * value - total) / n + settings.penalty * basis
        basis = basis - settings.learning_rate * slope
    return basis


def _least_squares(samples: Samples, basis: Floats, settings: Settings) -> Floats:
    """(B^T B + ridge) a = B^T x + ridge * present a."""
    count, total, signs = _statistics(samples, basis)
    ridge = settings.ridge * samples.weights.sum()
    left = np.einsum("rlk,rl,rlj->rkj", signs, count, signs) + ridge * np.eye(basis.shape[1])
    right = np.einsum("rlk,rl->rk", signs, total) + ridge * basis
    return np.linalg.solve(left, right[..., None])[..., 0]


def _statistics(samples: Samples, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """Per row and level: weight and weighted target sum of the samples there [rows, L], and signs
    [rows, L, K].
    """
    levels, order = codes.levels(basis)
    index = _encode(samples, levels)
    rows, count = levels.shape
    flat = (index + count * np.arange(rows)[:, None]).reshape(-1)
    weights = np.broadcast_to(samples.weights, index.shape)
    size = rows * count
    found = np.bincount(flat, weights.reshape(-1), size).reshape(rows, count)
    total = np.bincount(flat, (weights * samples.targets).reshape(-1), size).reshape(rows, count)
    return (
        found.astype(np.float64),
        total.astype(np.float64),
        codes.sign_codes(basis.shape[1])[order],
    )


def _encode(samples: Samples, levels: Floats) -> NDArray[np.intp]:
    return codes.encode_rows(samples.values, (levels[:, :-1] + levels[:, 1:]) / 2)


def _mse(samples: Samples, basis: Floats) -> Floats:
    """Mean squared distance of the targets from their levels, exact also for compressed targets."""
    levels, _ = codes.levels(basis)
    quantized = np.take_along_axis(levels, _encode(samples, levels), axis=1)
    cross = _mean(samples, quantized * (quantized - 2 * samples.targets))
    return np.maximum(cross + samples.energy, 0.0)


def _mean(samples: Samples, numbers: Floats) -> Floats:
    return np.asarray(numbers @ samples.weights / samples.weights.sum())
