"""TFLite_Detection_PostProcess kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, TensorType, Value
from luciole.ir.ops.non_max_suppression import CORNERS
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess, background
from luciole.ir.quantization import Affine
from luciole.kernels.boxes import detections
from luciole.kernels.boxes.detections import DetectionRecord
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.limits import SORT_BYTES, set_aside
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference

F32, U8 = TensorType.FLOAT32, TensorType.UINT8

Places = NDArray[np.intp]


SIGNATURES = (F32, U8, (F32, U8, F32), (U8, F32, U8))
"""Of encodings, scores and anchors."""


@reference(TFLiteDetectionPostProcess, *SIGNATURES)
def tflite_detection_postprocess(
    op: TFLiteDetectionPostProcess, encodings: Array, predictions: Array, anchors: Array
) -> tuple[Array, ...]:
    """Select detections by score, of equal ones the first; results that no detection fills are
    0.
    """
    if not 0 < op.nms_iou_threshold <= 1:
        threshold = op.nms_iou_threshold
        raise LucioleError(f"nms_iou_threshold is {threshold}, it must be above 0 and at most 1")
    skipped = background(op, predictions.shape[2])
    scores = _real(op.class_predictions, predictions, "class_predictions")[0, :, skipped:]
    boxes = _decoded(
        op,
        _real(op.box_encodings, encodings, "box_encodings")[0, :, :4],
        _real(op.anchors, anchors, "anchors"),
    )
    if op.use_regular_nms:
        return _by_class(op, boxes, scores)
    return _by_box(op, boxes, scores)


@native(TFLiteDetectionPostProcess, *SIGNATURES)
def build(op: TFLiteDetectionPostProcess, context: Context) -> Built:
    """Select detections where anchors are known and of no negative size, so that no box is wrong.

    Declines attributes that the reference refuses.
    """
    (encodings, predictions), anchors = context.pair, context.operands[2]
    if anchors is None or not op.anchors.is_constant:
        return Declined("anchors are no constants")
    if not 0 < op.nms_iou_threshold <= 1:
        return None
    known = accepted(_real, op.anchors, anchors, "anchors")
    if isinstance(known, Declined):
        return known
    if (known[:, 2:] < 0).any():
        return Declined("an anchor has a height or width below 0")
    if op.use_regular_nms and op.detections_per_class < 1:
        return None
    memory = Memory()
    tables = accepted(_tables, op, encodings, predictions, memory)
    if isinstance(tables, Declined):
        return tables
    places = memory.keep(known, encodings.shape[1], CORNERS)
    record = _record(op, context, places, memory, tables)
    kinds = (bool(decodes) for decodes, _ in tables)
    compiled = detections.kernel(op.use_regular_nms, *kinds)
    return memory.step(compiled.address, record)


Tables = Sequence[tuple[int, int]]
"""Of encodings and scores: where bytes become floats, and the table that says so; 0 for floats."""


def _tables(
    op: TFLiteDetectionPostProcess, encodings: Array, predictions: Array, memory: Memory
) -> Tables:
    """Take memory for the real numbers of bytes. Raises LucioleError where they have no scale."""
    tables = []
    operands = (
        (op.box_encodings, encodings, "box_encodings"),
        (op.class_predictions, predictions, "class_predictions"),
    )
    for value, array, name in operands:
        if array.dtype == np.float32:
            tables.append((0, 0))
            continue
        every = _real(value, np.arange(256, dtype=np.uint8), name)
        tables.append((memory.scratch(array.size), memory.keep(every, 256)))
    return tables


def _record(
    op: TFLiteDetectionPostProcess, context: Context, anchors: int, memory: Memory, tables: Tables
) -> DetectionRecord:
    """Lay out operands, results and the kernel's own memory."""
    encodings, predictions = context.pair
    _, count, numbers = encodings.shape
    width = predictions.shape[2]
    rows = op.max_detections * op.max_classes_per_detection
    addresses = [
        reach(encodings, encodings.itemsize * count * max(numbers, CORNERS)),
        reach(predictions, predictions.itemsize * count * width),
    ]
    real = [address or at for (address, _), at in zip(tables, addresses, strict=True)]
    sizes = (CORNERS * rows, rows, rows, 1)
    corners, kinds, values, counts = (
        reach(y, y.itemsize * size) for y, size in zip(context.results, sizes, strict=True)
    )
    return DetectionRecord(
        corners=corners,
        kinds=kinds,
        values=values,
        found=counts,
        rows=rows,
        encodings=real[0],
        numbers=numbers,
        anchors=anchors,
        scores=real[1] + 4 * background(op, width),
        width=width,
        classes=op.num_classes,
        count=count,
        encoded=addresses[0],
        encoding_table=tables[0][1],
        scored=addresses[1],
        score_table=tables[1][1],
        all_scores=real[1],
        **_own_memory(op, count, memory),
        **_settings(op),
    )


def _own_memory(op: TFLiteDetectionPostProcess, count: int, memory: Memory) -> dict[str, Any]:
    """Take the kernel's own memory for ``count`` boxes."""
    return {
        "boxes": memory.scratch(count, CORNERS),
        "best": memory.scratch(count),
        "good": memory.scratch(count, 2),
        "left": memory.scratch(count, 2),
        "top": memory.scratch(op.max_detections, 2),
    }


def _settings(op: TFLiteDetectionPostProcess) -> dict[str, Any]:
    """Name the operator's attributes as the record does."""
    return {
        "most": op.max_detections,
        "classes_each": op.max_classes_per_detection,
        "most_of_class": op.detections_per_class,
        "score_threshold": op.nms_score_threshold,
        "overlap": op.nms_iou_threshold,
        "y_scale": op.y_scale,
        "x_scale": op.x_scale,
        "h_scale": op.h_scale,
        "w_scale": op.w_scale,
    }


def _real(value: Value, array: Array, name: str) -> NDArray[np.float32]:
    """Return the numbers that integers stand for."""
    if array.dtype == np.float32:
        return array
    return Affine.of_tensor(value, name).decode(array).astype(np.float32)


def _decoded(op: TFLiteDetectionPostProcess, codes: Array, anchors: Array) -> Array:
    """Decode each box to least y, least x, largest y and largest x."""
    code, anchor = codes.astype(np.float64), anchors.astype(np.float64)
    places = np.array([op.y_scale, op.x_scale], np.float32).astype(np.float64)
    sizes = np.array([op.h_scale, op.w_scale], np.float32).astype(np.float64)
    center = code[:, :2] / places * anchor[:, 2:] + anchor[:, :2]
    half = 0.5 * np.exp(code[:, 2:] / sizes) * anchor[:, 2:]
    center, half = center.astype(np.float32), half.astype(np.float32)
    boxes = np.concatenate([center - half, center + half], axis=1)
    wrong = np.flatnonzero((boxes[:, :2] > boxes[:, 2:]).any(axis=1))
    if wrong.size:
        raise LucioleError(f"box {wrong[0]} has a height or width below 0")
    return boxes


def _by_class(op: TFLiteDetectionPostProcess, boxes: Array, scores: Array) -> tuple[Array, ...]:
    """Select boxes class by class, then the best of all."""
    if op.detections_per_class < 1:
        raise LucioleError(f"detections_per_class is {op.detections_per_class}, 1 is the least")
    places, classes = np.zeros(0, np.intp), np.zeros(0, np.intp)
    for c in range(op.num_classes):
        taken = _taken(op, boxes, scores[:, c], op.detections_per_class)
        places, classes = np.append(places, taken), np.append(classes, np.full(len(taken), c))
        best = _falling(scores[places, classes])[: op.max_detections]
        places, classes = places[best], classes[best]
    return _results(op, boxes, scores, places[:, None], classes[:, None], 1)


def _by_box(op: TFLiteDetectionPostProcess, boxes: Array, scores: Array) -> tuple[Array, ...]:
    """Select boxes by the best class of each, which comes with its other good ones."""
    order = _falling(scores)[:, : op.max_classes_per_detection]
    best = np.take_along_axis(scores, order[:, :1], axis=1)[:, 0]
    taken = _taken(op, boxes, best, op.max_detections)
    places = np.broadcast_to(taken[:, None], (len(taken), order.shape[1]))
    return _results(op, boxes, scores, places, order[taken], op.max_classes_per_detection)


def _results(
    op: TFLiteDetectionPostProcess,
    boxes: Array,
    scores: Array,
    places: Places,
    classes: Places,
    step: int,
) -> tuple[Array, ...]:
    """Return one row of places and classes for each detection, ``step`` elements apart."""
    most = op.max_detections * op.max_classes_per_detection
    corners = np.zeros((1, most, 4), np.float32)
    kinds, values = np.zeros((1, most), np.float32), np.zeros((1, most), np.float32)
    at = step * np.arange(len(places))[:, None] + np.arange(places.shape[1])
    corners[0, at], kinds[0, at] = boxes[places], classes
    values[0, at] = scores[places, classes]
    return corners, kinds, values, np.array([len(places)], np.float32)


def _taken(op: TFLiteDetectionPostProcess, boxes: Array, scores: Array, most: int) -> Places:
    """Return the places of the boxes taken, from the best score down."""
    good = np.flatnonzero(scores >= np.float32(op.nms_score_threshold))
    left = good[_falling(scores[good])]
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    taken, count = np.zeros(min(most, left.size), np.intp), 0
    while count < len(taken) and left.size:
        first, left = int(left[0]), left[1:]
        taken[count], count = first, count + 1
        inside = np.minimum(boxes[first, 2:], boxes[left, 2:])
        inside = np.maximum(inside - np.maximum(boxes[first, :2], boxes[left, :2]), 0)
        common = inside.prod(axis=1)
        share = common / (area[first] + area[left] - common)
        real = (area[first] > 0) & (area[left] > 0)
        left = left[~(real & (share > np.float32(op.nms_iou_threshold)))]
    return taken[:count]


def _falling(scores: Array) -> Places:
    """Sort places along the last axis from the largest score to the smallest."""
    with set_aside(SORT_BYTES * scores.shape[-1]):
        return np.asarray(np.argsort(-scores, axis=-1, kind="stable"))
