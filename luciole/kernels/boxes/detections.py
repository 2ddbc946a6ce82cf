"""The compiled kernel of TFLite_Detection_PostProcess: what its reference kernel computes, without
sorting what is never taken.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.boxes.suppression import BOX, best_of, decode_box, largest, without
from luciole.kernels.jit import Single, floats, longs
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.conversions import Kind, integers_at

BYTE = int(Kind.UINT8)


class DetectionRecord(Record):
    """Results, operands and the kernel's own memory: addresses, sizes, and the operator's
    attributes.
    """

    corners: int
    kinds: int
    values: int
    found: int
    rows: int
    """Boxes that results have room for."""
    encodings: int
    numbers: int
    """Of an encoding."""
    anchors: int
    scores: int
    """Behind a background."""
    width: int
    """Scores of a box, with a background."""
    classes: int
    count: int
    """Of boxes."""
    encoded: int
    """Encodings where they are bytes, and the table of their numbers; 0 else."""
    encoding_table: int
    scored: int
    score_table: int
    all_scores: int
    """Where the scores of bytes are written."""
    boxes: int
    best: int
    """The largest score of each box."""
    good: int
    """Places of boxes with a score that is large enough, and of boxes that are left."""
    left: int
    top: int
    """Places of the boxes taken so far."""
    most: int
    """Detections."""
    classes_each: int
    most_of_class: int
    score_threshold: float
    overlap: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float


@cache
def kernel(by_class: bool, encoded: bool, scored: bool) -> jit.Kernel:
    """Make the kernel that compares boxes of each class, or of all of them; encodings and scores
    are bytes or floats.
    """

    @jit.kernel
    def detect(r: DetectionRecord) -> None:
        if encoded:
            _decode(r.encodings, r.encoded, r.encoding_table, r.count * r.numbers)
        if scored:
            _decode(r.all_scores, r.scored, r.score_table, r.count * r.width)
        _clear(r.corners, 4 * r.rows)
        _clear(r.kinds, r.rows)
        _clear(r.values, r.rows)
        good = _find_good(r)
        taken = _take_by_class(r, good) if by_class else _take(r, good)
        floats(r.found)[0] = np.float32(taken)

    return detect


@jit.inlined
def _decode(to: int, codes: int, table: int, count: int) -> None:
    """Write the numbers that bytes stand for."""
    numbers, stored, known = floats(to), integers_at(codes, BYTE), floats(table)
    for k in range(count):
        numbers[k] = known[stored[k]]


@jit.inlined
def _clear(to: int, count: int) -> None:
    numbers = floats(to)
    for k in range(count):
        numbers[k] = np.float32(0)


@jit.inlined
def _find_good(r: DetectionRecord) -> int:
    """List the boxes one of whose scores is large enough, and decode them; return their number."""
    best, good, number = floats(r.best), longs(r.good), 0
    scales = (
        np.float64(r.y_scale),
        np.float64(r.x_scale),
        np.float64(r.h_scale),
        np.float64(r.w_scale),
    )
    for k in range(r.count):
        best[k] = largest(r.scores + 4 * r.width * k, r.classes)
        if best[k] >= r.score_threshold:
            code, anchor = r.encodings + 4 * r.numbers * k, r.anchors + BOX * k
            decode_box(r.boxes + BOX * k, code, anchor, scales)
            good[number] = k
            number += 1
    return number


@jit.inlined
def _take(r: DetectionRecord, count: int) -> int:
    """Take boxes by their best scores, each with its best classes; their number."""
    taken = 0
    while taken < r.most and count > 0:
        place = best_of(r.good, count, r.best, 4)
        _write_box(r, taken, place)
        count = without(r.good, count, r.boxes, place, r.overlap)
        taken += 1
    return taken


@jit.inlined
def _write_box(r: DetectionRecord, number: int, place: int) -> None:
    """Write a box with its best classes, of equal scores the first."""
    kinds, values = floats(r.kinds), floats(r.values)
    before, last = np.float32(np.inf), -1
    for k in range(min(r.classes_each, r.classes)):
        row = number * r.classes_each + k
        last = _next_class(r.scores + 4 * r.width * place, r.classes, before, last)
        before = floats(r.scores + 4 * r.width * place)[last]
        kinds[row], values[row] = np.float32(last), before
        _copy_box(r, row, place)


@jit.inlined
def _next_class(scores: int, classes: int, before: Single, last: int) -> int:
    """Return the class that follows one with the score ``before`` in falling order."""
    numbers, best, most = floats(scores), 0, np.float32(-np.inf)
    for c in range(classes):
        follows = numbers[c] < before or (numbers[c] == before and c > last)
        if follows and numbers[c] > most:
            best, most = c, numbers[c]
    return best


@jit.inlined
def _copy_box(r: DetectionRecord, row: int, place: int) -> None:
    to, box = floats(r.corners + BOX * row), floats(r.boxes + BOX * place)
    for k in range(4):
        to[k] = box[k]


@jit.inlined
def _take_by_class(r: DetectionRecord, good: int) -> int:
    """Take boxes class by class, and keep the best of all; their number."""
    held, top = 0, longs(r.top)
    for c in range(r.classes if r.most > 0 else 0):
        held = _take_class(r, good, c, held)
    for row in range(held):
        _copy_box(r, row, top[row])
    return held


@jit.inlined
def _take_class(r: DetectionRecord, good: int, c: int, held: int) -> int:
    """Take boxes of a class as long as they are among the best of all; how many there are then."""
    scores, step = r.scores + 4 * c, 4 * r.width
    count, taken = _candidates(r, good, scores, held), 0
    while taken < r.most_of_class and count > 0:
        place = best_of(r.left, count, scores, step)
        score = floats(scores + step * place)[0]
        if held == r.most and not score > floats(r.values)[held - 1]:
            break
        held = _insert(r, held, place, c, score)
        count = without(r.left, count, r.boxes, place, r.overlap)
        taken += 1
    return held


@jit.inlined
def _candidates(r: DetectionRecord, good: int, scores: int, held: int) -> int:
    """List the boxes whose score of a class is large enough to be among the best; their number."""
    listed, left, count = longs(r.good), longs(r.left), 0
    full = held == r.most
    lowest = floats(r.values)[held - 1] if full else np.float32(0)
    for k in range(good):
        score = floats(scores + 4 * r.width * listed[k])[0]
        if score >= r.score_threshold and (not full or score > lowest):
            left[count] = listed[k]
            count += 1
    return count


@jit.inlined
def _insert(r: DetectionRecord, held: int, place: int, c: int, score: Single) -> int:
    """Put a detection among the best, behind equal ones; how many there are then."""
    top, kinds, values = longs(r.top), floats(r.kinds), floats(r.values)
    row = min(held, r.most - 1)
    while row > 0 and values[row - 1] < score:
        top[row], kinds[row], values[row] = top[row - 1], kinds[row - 1], values[row - 1]
        row -= 1
    top[row], kinds[row], values[row] = place, np.float32(c), score
    return min(held + 1, r.most)
