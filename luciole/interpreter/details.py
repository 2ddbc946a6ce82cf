"""Describe tensors as LiteRT's dictionaries do."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from luciole.ir import Array, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.quantization import stored_parameters


class QuantizationDetails(TypedDict):
    """Scales and zero points of an affine tensor, as LiteRT gives them."""

    scales: Array
    zero_points: Array
    quantized_dimension: int
    block_size: int


class TensorDetails(TypedDict):
    """LiteRT's dictionary of a tensor."""

    name: str
    index: int
    shape: Array
    shape_signature: Array
    dtype: DTypeLike
    quantization: tuple[float, int]
    quantization_parameters: QuantizationDetails
    sparsity_parameters: dict[str, Any]


def details_of(value: Value, number: int, shape: tuple[int, ...]) -> TensorDetails:
    """Describe a tensor of a graph, by its number there and its present shape."""
    q = value.quantization
    scales, points = stored_parameters(value)
    zeros = points.astype(np.int32) if len(points) else np.zeros(len(scales), np.int32)
    return {
        "name": value.name,
        "index": number,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array([-1 if n is None else n for n in value.shape], np.int32),
        "dtype": _scalar_type(value.dtype),
        "quantization": (float(scales[0]), int(zeros[0])) if len(scales) == 1 else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zeros,
            "quantized_dimension": 0 if q is None else q.quantized_dimension,
            "block_size": 0,  # no kernel takes tensors that are quantized in blocks
        },
        "sparsity_parameters": {},
    }


def _scalar_type(dtype: TensorType) -> DTypeLike:
    """Find the type that LiteRT's dictionaries have."""
    if dtype == TensorType.STRING:
        return np.bytes_
    return NUMPY[dtype].type if dtype in NUMPY else np.object_
