"""Kernels that take the best of boxes that overlap.

With a sigma, scores fall with the share in common: Soft-NMS (Bodla, Singh, Chellappa and Davis,
Soft-NMS -- Improving Object Detection With One Line of Code, 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.non_max_suppression import (
    NonMaxSuppression,
    NonMaxSuppressionV4,
    NonMaxSuppressionV5,
    wanted,
)
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference


@reference(NonMaxSuppressionV4, TensorType.FLOAT32)
def non_max_suppression_v4(
    op: NonMaxSuppressionV4, boxes: Array, scores: Array, most: Array, iou: Array, score: Array
) -> tuple[Array, ...]:
    """Return places and their number."""
    rule = Rule(_number(iou), _number(score), np.float32(0))
    places, _, count = _padded(op, rule, boxes, scores, most)
    return places, count


@reference(NonMaxSuppressionV5, TensorType.FLOAT32)
def non_max_suppression_v5(
    op: NonMaxSuppressionV5,
    boxes: Array,
    scores: Array,
    most: Array,
    iou: Array,
    score: Array,
    sigma: Array,
) -> tuple[Array, ...]:
    """Return places, scores and their number."""
    if _number(sigma) < 0:
        raise LucioleError(f"soft_nms_sigma is {_number(sigma)}, it must be at least 0")
    return _padded(op, Rule(_number(iou), _number(score), _number(sigma)), boxes, scores, most)


@dataclass(frozen=True)
class Rule:
    """The share in common with a better box from which on a box is dropped, the score up to which
    it is, and how fast scores fall with the share (0: not at all).
    """

    overlap: np.float32
    score: np.float32
    sigma: np.float32


def _number(array: Array) -> np.float32:
    return np.float32(array.reshape(()))


def _padded(
    op: NonMaxSuppression, rule: Rule, boxes: Array, scores: Array, most: Array
) -> tuple[Array, Array, Array]:
    (length,) = affordable(op, (wanted(integers(most, "max_output_size", 1)),))
    taken, kept = _taken(rule, _Boxes(boxes), scores, length)
    places, values = np.zeros(length, np.int32), np.zeros(length, scores.dtype)
    places[: len(taken)], values[: len(taken)] = taken, kept
    return places, values, np.array(len(taken), np.int32)


NOTHING = np.float32(-np.inf)
"""The score of a box that is no candidate any more: no rule lets it pass."""


class _Boxes:
    """Boxes with their lesser corner first, and their areas.

    As in LiteRT, to the letter of its comparisons: a box whose first corner has NaN has an area of
    NaN, one with NaN only in the second has none.
    """

    def __init__(self, boxes: Array) -> None:
        first, second = boxes[:, :2], boxes[:, 2:]
        self.low = np.where(second < first, second, first)
        self.high = np.where(first < second, second, first)
        self.area = (self.high - self.low).prod(axis=1)

    def shares(self, box: int, others: NDArray[np.intp]) -> Array:
        """Compute intersection over union of a box with others; 0 where one has no area."""
        inside = np.minimum(self.high[box], self.high[others])
        inside = inside - np.maximum(self.low[box], self.low[others])
        common = np.maximum(inside, 0).prod(axis=1)
        union = self.area[box] + self.area[others] - common
        none = (self.area[box] <= 0) | (self.area[others] <= 0)
        return np.asarray(np.where(none, np.float32(0), common / union))


class _Queue:
    """Scores by place, the largest first. They lie in rows, so that few are looked at, and in an
    array, which a memory limit counts.
    """

    def __init__(self, scores: NDArray[np.float32]) -> None:
        width = isqrt(len(scores)) + 1
        self._rows = np.full((width, width), NOTHING)
        self._rows.reshape(-1)[: len(scores)] = scores
        self._best = self._rows.max(axis=1)

    def first(self) -> tuple[int, np.float32]:
        """Find the largest score, of equal ones the first: its place, and itself."""
        row = int(self._best.argmax())
        column = int(self._rows[row].argmax())
        return row * len(self._best) + column, self._rows[row, column]

    def put(self, place: int, score: np.float32) -> None:
        """Change a score."""
        row, column = divmod(place, len(self._best))
        self._rows[row, column] = score
        self._best[row] = self._rows[row].max()


def _taken(
    rule: Rule, boxes: _Boxes, scores: Array, most: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Select boxes: their places and scores, in order.

    As in TFLite, a box that was taken is a candidate again: it meets itself and falls out, but for
    one without an area, which has nothing in common with itself. Unlike there, of equal scores the
    first comes first.
    """
    queue = _Queue(np.where(scores > rule.score, scores, NOTHING))
    most = min(most, int(np.count_nonzero(scores > rule.score)))
    places, values = np.zeros(most, np.intp), np.zeros(most, np.float32)
    count, seen = 0, np.zeros(len(scores), np.intp)
    while count < most:
        place, score = queue.first()
        if score == NOTHING:
            break
        left = _left(rule, score, boxes.shares(place, places[seen[place] : count])[::-1])
        queue.put(place, NOTHING if left is None or not left > rule.score else left)
        seen[place] = count
        if left == score:
            places[count], values[count] = place, left
            count += 1
    return places[:count], values[:count]


def _left(rule: Rule, score: np.float32, shares: Array) -> np.float32 | None:
    """Reduce a score by the shares in common; None where one share is too much."""
    if not rule.sigma > 0:
        return None if (shares >= rule.overlap).any() else score
    fall = np.exp(np.float32(-0.5) / rule.sigma * shares * shares)
    for share, factor in zip(shares, fall, strict=True):
        if share >= rule.overlap:
            return None
        score = score * factor
        if score <= rule.score:
            break
    return score
