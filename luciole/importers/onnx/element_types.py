"""ONNX's element types and circle's."""

from __future__ import annotations

from luciole.importers.onnx.errors import RefusedError
from luciole.schema.enums import TensorType
from luciole.schema.onnx_dialect import ELEMENT_TYPES

WIDER = {
    TensorType.FLOAT16: TensorType.FLOAT32,
    TensorType.FLOAT64: TensorType.FLOAT32,
    TensorType.INT8: TensorType.INT32,
    TensorType.UINT8: TensorType.INT32,
    TensorType.INT16: TensorType.INT32,
    TensorType.UINT16: TensorType.INT32,
    TensorType.UINT32: TensorType.INT64,
    TensorType.UINT64: TensorType.INT64,
}
"""Types with which operators compute where they have no kernel for one: they hold all of its
numbers, except for float64 (float32 has 24 bits of its numbers) and uint64 (up to 2^63).
"""


def element_type(number: int) -> TensorType:
    """Find circle's element type. Raises RefusedError for one that it lacks."""
    if number not in ELEMENT_TYPES:
        raise RefusedError(f"circle has no element type {type_name(number)}")
    return ELEMENT_TYPES[number]


def type_name(number: int) -> str:
    """Name an element type as ONNX does."""
    from onnx import TensorProto

    names: dict[str, int] = dict(TensorProto.DataType.items())
    return next((name for name, n in names.items() if n == number), str(number))
