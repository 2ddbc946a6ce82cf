"""Boxes: NonMaxSuppression, a class of an image at a time."""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.control_flow import MOST_STEPS, joined, slices
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.non_max_suppression import NonMaxSuppressionV4
from luciole.ir.ops.pad import PadV2
from luciole.ir.ops.slice import Slice


@rule("NonMaxSuppression")
def non_max_suppression(k: Building, node: Node) -> Value:
    """Choose boxes [batch, n, 4] by scores [batch, classes, n]: rows of batch, class and place."""
    boxes, scores = node[0], node[1]
    batch, classes, count = k.dims(scores)
    most = min(k.integers(node[2])[0] if node.get(2) is not None else 0, count)
    if not 0 < batch * classes <= MOST_STEPS:
        raise RefusedError(f"it chooses for {batch * classes} classes, {MOST_STEPS} at most")
    if most < 1:
        return k.constant(np.zeros((0, 3), np.int64))
    if node.flag("center_point_box"):
        boxes = _corners(k, boxes)
    limit, overlap, least = k.constant(np.int32(most)), _overlap(k, node), _least(k, node)
    rows = []
    images = zip(slices(k, boxes, 0), slices(k, scores, 0), strict=True)
    for i, (corners, of_image) in enumerate(images):
        for j, of_class in enumerate(slices(k, of_image, 0)):
            choice = NonMaxSuppressionV4(corners, of_class, limit, overlap, least)
            places, valid = k.several(choice)
            rows.append(_rows(k, places, valid, (i, j)))
    return joined(k, rows, 0)


def _corners(k: Building, boxes: Value) -> Value:
    """Turn middles and sizes x, y, width, height to the corners y, x, y, x."""
    axis = len(k.dims(boxes)) - 1

    def part(*places: int) -> Value:
        return k.add(Gather(boxes, k.constant(np.array(places, np.int32)), axis=axis))

    middles, halves = part(1, 0), k.add(binary.Mul(part(3, 2), k.like(boxes, 0.5)))
    ends = [k.add(binary.Sub(middles, halves)), k.add(binary.Add(middles, halves))]
    return joined(k, ends, axis)


def _overlap(k: Building, node: Node) -> Value:
    """Read the share above which boxes go, the next number: there circle's go at the share."""
    threshold = node.get(3)
    if threshold is not None and threshold.data is None:
        return k.add(binary.Mul(k.reshape(threshold, ()), k.like(threshold, 1 + 2.0**-23)))
    share = 0.0 if threshold is None else k.known(threshold).reshape(-1)[0]
    return k.constant(np.nextafter(np.float32(share), np.float32(2)))


def _least(k: Building, node: Node) -> Value:
    """Read the score that boxes must be above."""
    threshold = node.get(4)
    return k.constant(np.float32(-np.inf)) if threshold is None else k.reshape(threshold, ())


def _rows(k: Building, places: Value, count: Value, before: tuple[int, int]) -> Value:
    """Put batch and class before the places that count: [n, 3]."""
    size = k.reshape(count, (1,))
    valid = k.add(Slice(places, k.constant(np.zeros(1, np.int32)), size))
    rows = k.reshape(k.cast(valid, TensorType.INT64), (None, 1))
    for number in reversed(before):
        table = k.constant(np.array([[0, 0], [1, 0]], np.int32))
        rows = k.add(PadV2(rows, table, k.constant(np.array([number], np.int64))))
    return rows
