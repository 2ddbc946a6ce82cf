"""Element types: their numbers in ONNX, and constants as protocol buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from luciole.exporters.onnx.errors import RefusedError
from luciole.ir import Array, TensorType
from luciole.ir.dtypes import pack
from luciole.schema.onnx_dialect import NUMBERS

if TYPE_CHECKING:
    from onnx import TensorProto

FOUR_BITS = (TensorType.INT4, TensorType.UINT4)
SINCE_FOUR_BITS = 21
"""The operator set that 4 bits came with."""


def onnx_type(dtype: TensorType) -> int:
    """Find ONNX's number of an element type. Raises RefusedError where it has none."""
    if dtype not in NUMBERS:
        raise RefusedError(f"ONNX has no element type {dtype.name}")
    return NUMBERS[dtype]


def tensor(array: Array, dtype: TensorType, name: str) -> TensorProto:
    """Make a constant's protocol buffer, the bytes as the model has them."""
    from onnx import TensorProto

    proto = TensorProto(name=name, data_type=onnx_type(dtype), dims=array.shape)
    if dtype == TensorType.STRING:
        proto.string_data.extend(array.reshape(-1).tolist())
    else:
        proto.raw_data = np.asarray(pack(array, dtype)).tobytes()
    return proto
