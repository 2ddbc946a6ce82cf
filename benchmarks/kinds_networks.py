"""Kinds of models for ``benchmarks.kinds``: integer layers and networks, files from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.builders import INT8, INT32, UINT8, Chain, Grid
from luciole.ir import Model
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess
from luciole.schema.enums import ActivationFunctionType

SEPARABLE = ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))
"""Outputs and stride of each pair of a depthwise layer and one of 1 x 1."""

DETECTION: dict[str, Any] = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "detections_per_class": 100,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.6,
    "num_classes": 90,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}
"""What SSD MobileNet files say."""


def _unsigned_layer(
    chain: Chain, cls: type[Conv2D] | type[DepthwiseConv2D], outputs: int, kernel: int, stride: int
) -> None:
    """Append a layer as toco wrote them: one scale, and a zero point so that centred weights have 9
    bits.
    """
    channels = chain.end.dims[3]
    shape = (outputs, kernel, kernel, channels)
    given: dict[str, Any] = {}
    if cls is DepthwiseConv2D:
        shape, given = (1, kernel, kernel, channels), {"depth_multiplier": 1}
    weights = chain.integers(Grid(UINT8, 0.004, 97), *shape, low=0, high=255)
    count = channels if cls is DepthwiseConv2D else outputs
    bias = chain.integers(Grid(INT32, 0.0235 * 0.004), count, low=-3000, high=3000)
    chain.add(
        cls,
        [chain.end, weights, bias],
        Grid(UINT8, 0.0235),
        stride_w=stride,
        stride_h=stride,
        activation=ActivationFunctionType.RELU6,
        **given,
    )


def unsigned_mobilenet() -> tuple[str, Model]:
    """Give a network like MobileNet v1 in UINT8, 64 x 64."""
    chain = Chain((1, 64, 64, 3), Grid(UINT8, 0.0078125, 128))
    _unsigned_layer(chain, Conv2D, 16, 3, 2)
    for outputs, stride in SEPARABLE:
        _unsigned_layer(chain, DepthwiseConv2D, 0, 3, stride)
        _unsigned_layer(chain, Conv2D, outputs, 1, 1)
    side = chain.end.dims[1]
    size = {"filter_height": side, "filter_width": side, "stride_h": side, "stride_w": side}
    chain.add(AveragePool2D, [chain.end], Grid(UINT8, 0.0235), **size)
    _unsigned_layer(chain, Conv2D, 10, 1, 1)
    shape = chain.constant(np.array([1, 10], np.int32))
    chain.add(Reshape, [chain.end, shape], Grid(UINT8, 0.0235))
    chain.add(Softmax, [chain.end], Grid(UINT8, 1 / 256), beta=1.0)
    return "MobileNet v1 UINT8, weights of 9 bits", chain.done()


def layer_with_a_large_factor() -> tuple[str, Model]:
    """Give a layer one channel of which has s_x s_w / s_y of 1 or more."""
    chain = Chain((1, 24, 24, 32), Grid(INT8, 0.05, -3))
    scales = np.full(32, 0.004)
    scales[5] = 1.5
    weights = chain.integers(Grid(INT8, scales.tolist(), 0, 0), 32, 3, 3, 32)
    bias = chain.integers(Grid(INT32, (0.05 * scales).tolist()), 32, low=-3000, high=3000)
    chain.add(Conv2D, [chain.end, weights, bias], Grid(INT8, 0.06, 4), stride_w=1, stride_h=1)
    return "CONV_2D INT8, one channel's factor above 1", chain.done()


def products() -> Iterator[tuple[str, Model]]:
    """Give products of two computed matrices of INT8, as attention has them: of all heads, and of
    one row alone.
    """
    for heads, rows, depth, columns in ((4, 64, 32, 64), (4, 64, 64, 32), (8, 1, 64, 128)):
        for adjoint in (False, True):
            chain = Chain((1, heads, rows, depth), Grid(INT8, 0.05, 3))
            shape = (columns, depth) if adjoint else (depth, columns)
            right = chain.input((1, heads, *shape), Grid(INT8, 0.04, -6), "right")
            chain.add(BatchMatMul, [chain.end, right], Grid(INT8, 0.5, 1), adjoint_rhs=adjoint)
            name = f"BATCH_MATMUL INT8 {heads} x [{rows}, {depth}] [{depth}, {columns}]"
            yield name + " transposed" * adjoint, chain.done()


def detections() -> Iterator[tuple[str, Model]]:
    """Give the end of SSD detectors: 1917 boxes, 90 classes and a background."""
    for regular in (False, True):
        chain = Chain((1, 1917, 4))
        scores = chain.input((1, 1917, 91), name="scores")
        places = chain.rng.uniform(0, 1, (1917, 2))
        sizes = chain.rng.uniform(0.05, 0.5, (1917, 2))
        anchors = chain.constant(np.concatenate([places, sizes], 1).astype(np.float32))
        given = DETECTION | {"use_regular_nms": regular}
        chain.add(TFLiteDetectionPostProcess, [chain.end, scores, anchors], **given)
        outputs = chain.graph.ops[-1].results
        how = "of each class" if regular else "of all classes"
        yield f"DETECTION_POSTPROCESS {how}", chain.done(*outputs)


def files_from_elsewhere() -> Iterator[tuple[str, bytes]]:
    """Give networks in INT8, and the small files on which luciole and others differed, of the
    folder that LUCIOLE_DATA names.
    """
    folder = Path(os.environ.get("LUCIOLE_DATA", "data"))
    for path in (
        *sorted(folder.glob("models/*_int8.tflite")),
        *sorted(folder.glob("foreign/*.tflite")),
    ):
        yield path.name, path.read_bytes()


def kinds() -> Iterator[tuple[str, Model | bytes]]:
    """Give all of them."""
    yield unsigned_mobilenet()
    yield layer_with_a_large_factor()
    yield from products()
    yield from detections()
    yield from files_from_elsewhere()
