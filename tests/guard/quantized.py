"""Models of compiled operators whose scales, types, anchors or windows chance hardly makes."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Model, Op, TensorType
from luciole.ir.ops.elementwise_unary import Rsqrt, Sqrt
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.mediapipe import MaxUnpooling2D
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess
from luciole.kernels.core.contract import Signature
from tests.guard.sizes import ODD
from tests.ops.detection_support import BASE, INTEGERS, operands
from tests.ops.pool_support import pool
from tests.support import Affine, one_op

HALVES = {TensorType.INT8: 128, TensorType.INT4: 8, TensorType.INT2: 2}
"""Types of rows that are decoded, and half of the numbers that each has."""

LOWEST = -(2**15)
"""The zero point of 16 bits below which no number is."""


def quantized(cls: type[Op], signature: Signature, rng: np.random.Generator) -> Model | None:
    """Make a model of odd extents, None for what chance does make."""
    if cls is TFLiteDetectionPostProcess:
        return _detections(signature, rng)
    if cls is MaxUnpooling2D:
        return _unpooling(rng)
    if cls is EmbeddingLookup and signature[0] in HALVES:
        return _table(signature[0], rng)
    if cls in (Sqrt, Rsqrt) and signature == (TensorType.INT16,):
        given = [Affine(2e-4, LOWEST)]
        return one_op(cls, [_integers(rng, np.int16)], affine=given, results=[Affine(3e-3)])
    if cls is Quantize and signature == (TensorType.INT32,):
        results = [Affine(0.1, 9, 0, TensorType(rng.choice([TensorType.INT8, TensorType.INT16])))]
        return one_op(cls, [_integers(rng, np.int32)], affine=[Affine(0.05, 3)], results=results)
    return None


def _table(dtype: TensorType, rng: np.random.Generator) -> Model:
    """Make rows of integers that become real numbers, with one scale or one for each row."""
    rows, width = (int(n) for n in rng.choice([n for n in ODD if n > 0], 2))
    table = rng.integers(-HALVES[dtype], HALVES[dtype], (rows, width)).astype(np.int8)
    count = int(rng.choice([1, rows]))
    grid = Affine(rng.uniform(0.1, 0.9, count).tolist(), [0] * count, 0, dtype)
    lookup = np.zeros(int(rng.choice(ODD)), np.int32)
    model = one_op(EmbeddingLookup, [lookup, table], (1,), affine=[None, grid])
    model.graph.outputs[0].dtype = TensorType.FLOAT32
    return model


def _integers(rng: np.random.Generator, dtype: type[np.signedinteger]) -> Array:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, int(rng.choice(ODD)), dtype, endpoint=True)


def _unpooling(rng: np.random.Generator) -> Model:
    height, width = (int(n) for n in rng.integers(1, 4, 2))
    shape = tuple(int(n) for n in (*rng.integers(1, 4, 3), rng.choice(ODD)))
    places = rng.integers(0, height * width, shape).astype(np.int32).view(np.float32)
    x = rng.standard_normal(shape).astype(np.float32)
    return one_op(MaxUnpooling2D, [x, places], **pool(height, width))


def _detections(signature: Signature, rng: np.random.Generator) -> Model:
    count = int(rng.choice([n for n in ODD if 0 < n <= 70]))
    given = operands(count, 6)
    types = [signature[min(k, len(signature) - 1)] for k in range(len(given))]
    affine = [
        grid if dtype == TensorType.UINT8 else None
        for grid, dtype in zip(INTEGERS, types, strict=True)
    ]
    arrays = [
        rng.integers(0, 256, array.shape, np.uint8) if dtype == TensorType.UINT8 else array
        for array, dtype in zip(given, types, strict=True)
    ]
    options = BASE | {"use_regular_nms": bool(rng.integers(2))}
    return one_op(TFLiteDetectionPostProcess, arrays, (2,), affine=affine, **options)
