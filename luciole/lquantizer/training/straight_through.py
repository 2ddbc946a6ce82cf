"""Levels as TensorFlow computes them, with a gradient that passes straight through.

The arithmetic is that of ``luciole.ir.learned_levels``: levels in double precision, thresholds
rounded to float32, a tie to the lower level. So the codes chosen here are those of the exported
operator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from luciole.ir import learned_levels
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow

_MANY = 15
"""Thresholds up to which one comparison for each is faster than a search."""
_HAS_COMPILER = sys.platform != "win32"
"""Whether TensorFlow comes with its compiler XLA."""


class Levels(NamedTuple):
    """The 2^K levels of each row in rising order, as float32 without gradients."""

    values: Tensor
    """[rows, 2^K]"""
    signs: Tensor
    """[rows, 2^K, K]: the sign of each basis element in each level."""
    between: Tensor
    """[rows, 2^K - 1]: where one level ends and the next begins."""


def levels_of(tf: TensorFlow, basis: Tensor, offset: Tensor) -> Levels:
    """List the levels of bases [rows, K] and offsets [rows]."""
    basis, offset = (tf.cast(tf.stop_gradient(v), tf.float64) for v in (basis, offset))
    signs = learned_levels.sign_codes(basis.shape[-1])
    wide = basis @ signs.T + offset[:, None]
    order = tf.argsort(wide, axis=-1, stable=True)
    values = tf.gather(wide, order, batch_dims=1)
    between = tf.cast((values[:, :-1] + values[:, 1:]) / 2, tf.float32)
    return Levels(tf.cast(values, tf.float32), tf.gather(signs.astype(np.float32), order), between)


def span(levels: Levels) -> tuple[Tensor, Tensor]:
    """Reach half a step below the lowest level and half a step above the highest: two [rows, 1]."""
    low, high = levels.values[:, :1], levels.values[:, -1:]
    reach = (high - low) / (2 * levels.between.shape[-1])
    return low - reach, high + reach


def quantized(tf: TensorFlow, x: Tensor, basis: Tensor, offset: Tensor) -> Tensor:
    """Round rows x [rows, n] to their nearest levels of bases [rows, K] and offsets [rows].

    The gradient passes to x between half a step below the lowest and half a step above the highest
    level; an offset gets it from all elements of its row, a basis element with its sign in each
    one's level (Bengio et al. 2013, arXiv:1308.3432; Choi et al. 2018, arXiv:1805.06085).
    """
    levels = levels_of(tf, basis, offset)
    forward, backward = _passes(tf, basis.shape[-1])

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def straight_through(x: Tensor, basis: Tensor, offset: Tensor) -> Tensor:
        def gradient(slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            to_x, to_basis = backward(x, slope, levels)
            return to_x, to_basis, tf.reduce_sum(slope, 1)

        return forward(x, levels), gradient

    return straight_through(x, basis, offset)


@cache
def _passes(tf: TensorFlow, bits: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Compile the function that quantizes, and the one of the slopes of x and of the bases.

    Both are compiled into one loop over the elements: 2 instead of 10 ns for each at two bits.
    """

    def backward(x: Tensor, slope: Tensor, levels: Levels) -> tuple[Tensor, Tensor]:
        low, high = span(levels)
        inside = tf.logical_and(x >= low, x <= high)
        return tf.where(inside, slope, 0.0), _to_basis(tf, x, slope, levels)

    def forward(x: Tensor, levels: Levels) -> Tensor:
        return _pick(tf, x, levels.between, levels.values)

    compiler = _HAS_COMPILER and (1 << bits) - 1 <= _MANY
    compiled = [tf.function(f, jit_compile=compiler, autograph=False) for f in (forward, backward)]
    return compiled[0], compiled[1]


def _pick(tf: TensorFlow, x: Tensor, between: Tensor, table: Tensor) -> Tensor:
    """Take, for each element, the number in its row of a table [rows, 2^K] that belongs to its
    level.
    """
    count = between.shape[-1]
    if count > _MANY:
        return tf.gather(table, tf.searchsorted(between, x, side="left"), batch_dims=1)
    numbers = table[:, :1]
    for i in range(count):
        numbers = tf.where(x > between[:, i : i + 1], table[:, i + 1 : i + 2], numbers)
    return numbers


def _to_basis(tf: TensorFlow, x: Tensor, slope: Tensor, levels: Levels) -> Tensor:
    """Sum the slope of each basis element [rows, K] over the elements, with its signs."""
    rows, count, bits = levels.signs.shape
    if levels.between.shape[-1] <= _MANY:
        signs = (levels.signs[:, :, k] for k in range(bits))
        sums = [tf.reduce_sum(slope * _pick(tf, x, levels.between, s), 1) for s in signs]
        return tf.stack(sums, 1)
    places = tf.searchsorted(levels.between, x, side="left") + count * tf.range(rows)[:, None]
    by_level = tf.math.unsorted_segment_sum(slope, places, rows * count)
    return tf.einsum("rl,rlk->rk", tf.reshape(by_level, (rows, count)), levels.signs)
