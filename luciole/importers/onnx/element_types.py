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


FLOAT16, BFLOAT16, _INT2 = 10, 16, 26
HELD = {
    BFLOAT16: (16, TensorType.FLOAT32),
    **dict.fromkeys((17, 18, 19, 20, 24), (8, TensorType.FLOAT32)),
    23: (4, TensorType.FLOAT32),
    25: (2, TensorType.UINT8),
    _INT2: (2, TensorType.INT8),
}
"""ONNX's types that circle lacks: the bits of an element, and the type that holds its numbers: of
BFLOAT16, FLOAT8, FLOAT4 and of integers of 2 bits.
"""
_UNPACKED = {TensorType.INT4: TensorType.INT8, TensorType.UINT4: TensorType.UINT8}


def element_type(number: int) -> TensorType:
    """Find circle's element type; BFLOAT16 is computed as FLOAT32. Raises RefusedError for one that
    circle lacks.
    """
    if number == BFLOAT16:
        return TensorType.FLOAT32
    if number not in ELEMENT_TYPES:
        raise RefusedError(f"circle has no element type {type_name(number)}")
    return ELEMENT_TYPES[number]


def held_type(number: int, *, packed: bool = True) -> TensorType:
    """Find an element type that holds the numbers of ONNX's: wider ones for those that circle
    lacks, and for those of 4 bits unless these may be ``packed``. Raises RefusedError for others.
    """
    if number in HELD:
        return HELD[number][1]
    dtype = element_type(number)
    return dtype if packed else _UNPACKED.get(dtype, dtype)


def is_widened(number: int, dtype: TensorType) -> bool:
    """Return whether ONNX's type has less numbers than another that holds them; floats of 16 bits
    are computed with 32.
    """
    return number not in (BFLOAT16, FLOAT16) and ELEMENT_TYPES.get(number) != dtype


def type_name(number: int) -> str:
    """Name an element type as ONNX does."""
    from onnx import TensorProto

    names: dict[str, int] = dict(TensorProto.DataType.items())
    return next((name for name, n in names.items() if n == number), str(number))
