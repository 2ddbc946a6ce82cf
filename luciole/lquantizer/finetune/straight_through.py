"""Levels as TensorFlow computes them, with a gradient that passes straight through.

The arithmetic is that of ``luciole.ir.codes``: levels in double precision, thresholds rounded to
float32, a tie to the lower level. So the codes chosen here are those of the exported operator.
"""

from __future__ import annotations

from luciole.ir import codes
from luciole.lquantizer.finetune.tensorflow import Tensor, TensorFlow

_MANY = 15


def sorted_levels(tf: TensorFlow, basis: Tensor, offset: Tensor) -> Tensor:
    """The levels of bases [rows, K] and offsets [rows] in rising order: [rows, 2^K] in float64.

    A level's gradient goes to the offset, and to each basis element with its sign in that level.
    """
    signs = codes.sign_codes(basis.shape[-1]).T
    wide = tf.cast(basis, tf.float64) @ signs + tf.cast(offset, tf.float64)[:, None]
    order = tf.argsort(wide, axis=-1, stable=True)
    return tf.gather(wide, order, batch_dims=1)


def thresholds(tf: TensorFlow, levels: Tensor) -> Tensor:
    """Where one level ends and the next begins: [rows, 2^K - 1] in float32, without a gradient."""
    fixed = tf.stop_gradient(levels)
    return tf.cast((fixed[:, :-1] + fixed[:, 1:]) / 2, tf.float32)


def span(tf: TensorFlow, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Half a step below the lowest level and half a step above the highest: two [rows, 1]."""
    steps = levels.shape[-1] - 1
    low, high = (tf.cast(tf.stop_gradient(v), tf.float32) for v in (levels[:, :1], levels[:, -1:]))
    reach = (high - low) / (2 * steps)
    return low - reach, high + reach


def _index(tf: TensorFlow, x: Tensor, between: Tensor) -> Tensor:
    """How many of its row's thresholds each element lies above: binary search where there are many
    (0.2 instead of 2.2 ms for 541,000 elements and one threshold, 2.7 instead of 9.4 ms for 15).
    """
    count = between.shape[-1]
    if count > _MANY:
        return tf.searchsorted(between, x, side="left")
    above = [tf.cast(x > between[:, i : i + 1], tf.int32) for i in range(count)]
    return tf.add_n(above)


def quantized(tf: TensorFlow, x: Tensor, levels: Tensor) -> Tensor:
    """Rows x [rows, n] on their nearest levels [rows, 2^K].

    The gradient passes to x between half a step below the lowest and half a step above the highest
    level, and to each level from all elements on it (Bengio et al. 2013, arXiv:1308.3432; Choi et
    al. 2018, arXiv:1805.06085).
    """
    between, (low, high) = thresholds(tf, levels), span(tf, levels)
    rows, count = levels.shape

    @tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def straight_through(x: Tensor, narrow: Tensor) -> Tensor:
        ids = _index(tf, x, between) + count * tf.range(rows)[:, None]

        def gradient(slope: Tensor) -> tuple[Tensor, Tensor]:
            inside = tf.logical_and(x >= low, x <= high)
            sums = tf.math.unsorted_segment_sum(slope, ids, rows * count)
            return tf.where(inside, slope, 0.0), tf.reshape(sums, (rows, count))

        return tf.gather(tf.reshape(narrow, (-1,)), ids), gradient

    return straight_through(x, tf.cast(levels, tf.float32))
