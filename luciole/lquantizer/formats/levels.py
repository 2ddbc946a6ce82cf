"""Fit bases to samples by quantization-error minimisation (QEM; LQ-Nets, Zhang et al. 2018, section
3.2).

Two steps alternate: each sample takes its nearest level, then each basis moves so that the levels
lie closer to their samples. A basis of K elements spans 2^K levels, so K numbers are learned for
each row of samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from luciole.ir import learned_levels

Floats = NDArray[np.float64]
Initialisation = Literal["random", "greedy", "uniform"]


@dataclass(frozen=True)
class Settings:
    """How bases are fitted.

    ``gradient`` is the published update; ``least_squares`` solves for the best basis at once, with
    a ridge that holds directions which the codes leave open at their present value.
    """

    method: Literal["gradient", "least_squares"] = "gradient"
    initialisation: Initialisation = "random"
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
    def of(cls, values: NDArray[np.floating], weights: Floats | None = None) -> Samples:
        """Make every number its own target, which counts once, or as often as its column's
        weight.
        """
        wide = np.atleast_2d(np.asarray(values, np.float64))
        counts = np.ones(wide.shape[1]) if weights is None else weights
        return cls(wide, wide, counts, np.asarray(wide**2 @ counts / counts.sum()))

    @classmethod
    def compressed(
        cls,
        values: NDArray[np.floating],
        targets: NDArray[np.floating] | None = None,
        bins: int = 4096,
    ) -> Samples:
        """Compress one row: equal values share a column, and more than ``bins`` of them become
        bins.

        A column's target is the mean of its samples' targets; nothing else of them matters for a
        fit.
        """
        x = np.asarray(values, np.float64).reshape(-1)
        t = x if targets is None else np.asarray(targets, np.float64).reshape(-1)
        column = _binned(x, bins)
        count = np.bincount(column)
        used = count > 0
        mean_x, mean_t = (np.bincount(column, v)[used] / count[used] for v in (x, t))
        return cls(
            mean_x[None], mean_t[None], count[used].astype(np.float64), np.array([np.mean(t**2)])
        )


def _binned(x: Floats, bins: int) -> NDArray[np.intp]:
    """Find the column of each number: one for each different one, else bins from the least to the
    most. Sorting a few is mostly enough to know which.
    """
    if len(np.unique(x[: 8 * bins])) <= bins:
        unique, column = np.unique(x, return_inverse=True)
        if len(unique) <= bins:
            return column
    low, high = x.min(), x.max()
    columns = ((x - low) / (high - low) * bins).astype(np.intp)
    return np.asarray(np.minimum(columns, bins - 1))


@dataclass(frozen=True)
class Fit:
    """Bases [rows, K], offsets [rows] and their mean squared errors [rows]."""

    basis: Floats
    offset: Floats
    mse: Floats


def fit(
    samples: Samples,
    bits: int,
    settings: Settings,
    start: Floats | None = None,
    offset: bool = False,
) -> Fit:
    """Fit one basis of ``bits`` elements to each row; deterministic for a given seed.

    ``start`` [rows, bits] replaces the initialisation. With ``offset`` (least squares only) levels
    are offset + sum_i (+-a_i), and each row's offset is fitted too.
    """
    if offset and settings.method != "least_squares":
        raise ValueError("an offset is fitted by least squares only")
    centre = _centre(samples, settings, offset)
    basis = _initial(samples, centre, bits, settings) if start is None else np.array(start)
    before = np.column_stack([basis, centre])
    for _ in range(settings.iterations):
        if settings.method == "gradient":
            basis = _gradient(samples, basis, settings)
        else:
            basis, centre = _least_squares(samples, basis, centre, settings, offset)
        now = np.column_stack([basis, centre])
        if (np.abs(before - now) <= 1e-12 + 1e-7 * np.abs(now)).all():
            break
        before = now
    return Fit(basis, centre, levels_error(samples, basis, centre))


def best_fit(samples: Samples, bits: int, offset: bool, restarts: int = 3, seed: int = 0) -> Fit:
    """Find the best of several least-squares fits, row by row: greedy, uniform and random starts,
    and ``restarts`` more from disturbed copies of the best basis so far.
    """
    settings = Settings(method="least_squares", seed=seed)
    best: Fit | None = None
    starts: tuple[Initialisation, ...] = ("greedy", "uniform", "random")
    for start in starts:
        best = _better(
            best, fit(samples, bits, replace(settings, initialisation=start), None, offset)
        )
    assert best is not None
    generator = np.random.default_rng(seed)
    for number in range(restarts):
        again = replace(settings, initialisation=("greedy", "uniform")[number % 2])
        disturbed = best.basis * np.exp(generator.normal(0, 0.5, best.basis.shape))
        best = _better(best, fit(samples, bits, again, disturbed, offset))
    return best


def _better(one: Fit | None, other: Fit) -> Fit:
    if one is None:
        return other
    wins = other.mse < one.mse
    return Fit(
        np.where(wins[:, None], other.basis, one.basis),
        np.where(wins, other.offset, one.offset),
        np.where(wins, other.mse, one.mse),
    )


def _centre(samples: Samples, settings: Settings, offset: bool) -> Floats:
    """Find where levels begin to spread from: 0, or with an offset the middle of the values (for
    evenly spaced levels that of their range).
    """
    if not offset:
        return np.zeros(len(samples.values))
    if settings.initialisation == "uniform":
        return np.asarray((samples.values.min(1) + samples.values.max(1)) / 2)
    return _mean(samples, samples.values)


def _initial(samples: Samples, centre: Floats, bits: int, settings: Settings) -> Floats:
    rest = samples.values - centre[:, None]
    if settings.initialisation == "greedy":
        return _greedy(samples, rest, bits)
    if settings.initialisation == "uniform":
        return _uniform(rest, bits)
    return _random(samples, rest, bits, settings.seed)


def _random(samples: Samples, rest: Floats, bits: int, seed: int) -> Floats:
    """Draw |normal| scaled to each row's root mean square: a basis far from the data's size never
    finds it.
    """
    generator = np.random.default_rng(seed)
    scale = np.sqrt(_mean(samples, rest**2))
    return np.abs(generator.standard_normal((len(rest), bits))) * scale[:, None]


def _greedy(samples: Samples, rest: Floats, bits: int) -> Floats:
    """Take, element by element, the mean magnitude of the remainder of the elements before."""
    basis = np.empty((len(rest), bits))
    for k in range(bits):
        basis[:, k] = _mean(samples, np.abs(rest))
        rest = rest - np.where(rest > 0, 1.0, -1.0) * basis[:, k : k + 1]
    return basis


def _uniform(rest: Floats, bits: int) -> Floats:
    """Make evenly spaced levels over each row's range: a_i = range 2^i / (2^K - 1)."""
    steps = 2.0 ** np.arange(bits) / (2**bits - 1)
    return np.asarray(np.abs(rest).max(1)[:, None] * steps)


def _gradient(samples: Samples, basis: Floats, settings: Settings) -> Floats:
    """Descend a <- a - lr / n * sum_i [((b_i, a) - x_i) b_i + lambda a], several times for one
    encoding.
    """
    count, total, signs = _statistics(samples, basis, np.zeros(len(basis)))
    n = samples.weights.sum()
    for _ in range(settings.steps):
        value = np.einsum("rlk,rk->rl", signs, basis)
        slope = np.einsum("rlk,rl->rk", signs, count * value - total) / n + settings.penalty * basis
        basis = basis - settings.learning_rate * slope
    return basis


def _least_squares(
    samples: Samples, basis: Floats, centre: Floats, settings: Settings, offset: bool
) -> tuple[Floats, Floats]:
    """Solve (B^T B + ridge) a = B^T x + ridge * present a, the offset being one more column of
    ones.
    """
    count, total, signs = _statistics(samples, basis, centre)
    present = basis
    if offset:
        signs = np.concatenate([signs, np.ones((*signs.shape[:2], 1))], axis=2)
        present = np.concatenate([basis, centre[:, None]], axis=1)
    ridge = settings.ridge * samples.weights.sum()
    left = np.einsum("rlk,rl,rlj->rkj", signs, count, signs) + ridge * np.eye(present.shape[1])
    right = np.einsum("rlk,rl->rk", signs, total) + ridge * present
    solved = np.linalg.solve(left, right[..., None])[..., 0]
    return (solved[:, :-1], solved[:, -1]) if offset else (solved, centre)


def _statistics(samples: Samples, basis: Floats, centre: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum up, per row and level, weight and weighted target sum of the samples there [rows, L], and
    signs [rows, L, K].
    """
    levels, order = learned_levels.levels(basis, centre)
    index = _encode(samples, levels)
    rows, count = levels.shape
    flat = (index + count * np.arange(rows)[:, None]).reshape(-1)
    weights = np.broadcast_to(samples.weights, index.shape)
    size = rows * count
    counts = np.bincount(flat, weights.reshape(-1), size).reshape(rows, count)
    total = np.bincount(flat, (weights * samples.targets).reshape(-1), size).reshape(rows, count)
    return (
        counts.astype(np.float64),
        total.astype(np.float64),
        learned_levels.sign_codes(basis.shape[1])[order],
    )


def _encode(samples: Samples, levels: Floats) -> NDArray[np.intp]:
    return learned_levels.encode_rows(samples.values, (levels[:, :-1] + levels[:, 1:]) / 2)


def levels_error(samples: Samples, basis: Floats, centre: Floats) -> Floats:
    """Compute the mean squared distance of the targets from their levels, exact also for compressed
    targets.
    """
    levels, _ = learned_levels.levels(basis, centre)
    quantized = np.take_along_axis(levels, _encode(samples, levels), axis=1)
    cross = _mean(samples, quantized * (quantized - 2 * samples.targets))
    return np.maximum(np.asarray(cross + samples.energy, np.float64), 0.0)


def _mean(samples: Samples, numbers: Floats) -> Floats:
    return np.asarray(numbers @ samples.weights / samples.weights.sum())
