"""Element types: what NumPy calls them, and how values narrower than a byte are packed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import strings
from luciole.ir.errors import LucioleError
from luciole.schema.enums import TensorType

Array = NDArray[Any]

byte_bounds: Callable[[Array], tuple[int, int]] = getattr(np.lib, "array_utils", np).byte_bounds
"""Finds the addresses of an array's lowest byte and of the one behind its highest. It has another
place in NumPy 1.
"""

NUMPY: dict[TensorType, np.dtype[Any]] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.RESOURCE: np.dtype(np.int32),
}
"""Types whose buffer is simply the array's bytes. A resource is the number of a variable."""

PACKED: dict[TensorType, tuple[int, np.dtype[Any]]] = {
    TensorType.INT2: (2, np.dtype(np.int8)),
    TensorType.INT4: (4, np.dtype(np.int8)),
    TensorType.UINT4: (4, np.dtype(np.uint8)),
}
"""Types with several values in a byte, the first in the lowest bits: bits per value, and the
unpacked type.
"""

MICROSCALED = (TensorType.MXFP4, TensorType.MXINT8)
"""Types whose blocks share scales, see ``microscaling``: only operators compute such tensors, as
float32.
"""

_OF_NUMPY = {dtype: t for t, dtype in NUMPY.items() if t != TensorType.RESOURCE}
_OF_NUMPY[strings.OBJECTS] = TensorType.STRING


def tensor_type(dtype: np.dtype[Any]) -> TensorType:
    """Find the element type of an array: objects are texts. Raises TypeError for one that circle
    does not have.
    """
    try:
        return _OF_NUMPY[np.dtype(dtype)]
    except KeyError:
        raise TypeError(f"circle has no element type for {dtype}") from None


def byte_count(dtype: TensorType, elements: int) -> int | None:
    """Count the bytes of a buffer of this many elements; None where the type does not fix it
    (strings, ...).
    """
    if dtype in NUMPY:
        return elements * NUMPY[dtype].itemsize
    if dtype in PACKED:
        return -(-elements * PACKED[dtype][0] // 8)
    return None


def element_bits(dtype: TensorType) -> int | None:
    """Count the bits of one element, None where that is not fixed (strings, ...)."""
    if dtype in PACKED:
        return PACKED[dtype][0]
    return NUMPY[dtype].itemsize * 8 if dtype in NUMPY else None


def array_type(dtype: TensorType) -> np.dtype[Any]:
    """Find the type of an array of these elements; packed ones are unpacked. KeyError: there is
    none.
    """
    return PACKED[dtype][1] if dtype in PACKED else NUMPY[dtype]


def array_bytes(dtype: TensorType, elements: int) -> int | None:
    """Count the bytes that an array of this many elements takes, None where the type has no array
    form.
    """
    if dtype in PACKED:
        return elements * PACKED[dtype][1].itemsize
    return byte_count(dtype, elements)


@cache
def integer_range(dtype: TensorType) -> tuple[int, int] | None:
    """Find the smallest and the largest number of an integer type, None for every other type."""
    if dtype in PACKED:
        bits, unpacked = PACKED[dtype]
        low = 0 if unpacked.kind == "u" else -(2 ** (bits - 1))
        return low, low + 2**bits - 1
    if dtype not in NUMPY or NUMPY[dtype].kind not in "iu":
        return None
    limits = np.iinfo(NUMPY[dtype])
    return int(limits.min), int(limits.max)


def limits_of(dtype: TensorType) -> tuple[int, int]:
    """Find the smallest and the largest number of an integer type. Raises LucioleError for another
    type.
    """
    limits = integer_range(dtype)
    if limits is None:
        raise LucioleError(f"{dtype.name} is no type of integers")
    return limits


def unpack(raw: NDArray[np.uint8], dtype: TensorType, shape: tuple[int, ...]) -> Array | None:
    """Turn a buffer into an array of the given shape: a view where the type allows, None where it
    has no array form.
    """
    if dtype in NUMPY:
        return raw.view(NUMPY[dtype]).reshape(shape)
    if dtype not in PACKED:
        return None
    bits, unpacked = PACKED[dtype]
    lanes = np.arange(0, 8, bits, dtype=np.uint8)
    values = (raw[:, None] >> lanes) & np.uint8(2**bits - 1)
    values = values.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(shape)
    if unpacked.kind == "u":
        return values
    sign = np.uint8(2 ** (bits - 1))
    return ((values ^ sign).astype(np.int8) - np.int8(sign)).astype(np.int8)


def check_whole(array: Array, dtype: TensorType) -> None:
    """Refuse numbers with fractions for a type of integers. Raises ValueError."""
    kind = array_type(dtype).kind if dtype in NUMPY or dtype in PACKED else ""
    if kind in "iu" and array.dtype.kind == "f" and bool((array != np.trunc(array)).any()):
        raise ValueError(f"{dtype.name} holds whole numbers, found fractions (np.rint rounds)")


def pack(array: Array, dtype: TensorType) -> NDArray[np.uint8]:
    """Turn an array into the bytes of a buffer: the inverse of ``unpack``, and of
    ``strings.decode``.
    """
    if dtype == TensorType.STRING:
        return strings.encode(list(strings.given(array).flat))
    if dtype in NUMPY:
        return np.ascontiguousarray(array, NUMPY[dtype]).reshape(-1).view(np.uint8)
    if dtype not in PACKED:
        raise TypeError(f"values of type {dtype.name} cannot be given as an array")
    bits, unpacked = PACKED[dtype]
    per_byte = 8 // bits
    flat = np.asarray(array).reshape(-1)
    flat = flat if flat.dtype.kind in "iu" else flat.astype(np.int64)
    low = 0 if unpacked.kind == "u" else -(2 ** (bits - 1))
    if flat.size and (flat.min() < low or flat.max() >= low + 2**bits):
        raise ValueError(
            f"{dtype.name} holds {low} to {low + 2**bits - 1}, found {flat.min()} to {flat.max()}"
        )
    lanes = flat.astype(np.uint8) & np.uint8(2**bits - 1)
    packed = np.zeros(-(-len(flat) // per_byte), np.uint8)
    for place in range(per_byte):
        lane = lanes[place::per_byte]
        packed[: len(lane)] |= lane << np.uint8(place * bits)
    return packed
