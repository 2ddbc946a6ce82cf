"""Operands of TFLite_Detection_PostProcess."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Array
from tests.support import Affine

BASE: dict[str, Any] = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "num_classes": 5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


INTEGERS = [Affine(0.03, 128), Affine(1 / 256, 3), Affine(1 / 256, 20)]


def operands(count: int = 50, classes: int = 6, numbers: int = 4) -> list[Array]:
    rng = np.random.default_rng(5)
    anchors = [rng.uniform(0, 1, (count, 2)), rng.uniform(0.1, 0.5, (count, 2))]
    return [
        rng.normal(size=(1, count, numbers)).astype(np.float32),
        rng.uniform(0, 1, (1, count, classes)).astype(np.float32),
        np.concatenate(anchors, axis=1).astype(np.float32),
    ]
