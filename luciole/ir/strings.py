"""String tensors: a buffer is their number, where each begins and the last ends, and their bytes.

Numbers are int32, little endian, counted from the buffer's beginning: TFLite's string_util.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import Array
from luciole.ir.value import Value, element_count
from luciole.schema.enums import TensorType


def decode(raw: NDArray[np.uint8]) -> list[str] | None:
    """Read the texts of a buffer, None where it holds none. Bytes that are no UTF-8 become single
    surrogates, which ``surrogateescape`` turns back.
    """
    head = raw[: len(raw) // 4 * 4].view("<i4")
    count = int(head[0]) if len(head) else -1
    if not 0 <= count <= len(head) - 2:
        return None
    ends = head[1 : count + 2].tolist()
    if any(not 4 * (count + 2) <= a <= b <= len(raw) for a, b in pairwise([ends[0], *ends])):
        return None
    content = raw.tobytes()
    return [content[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(ends)]


def strings_of(value: Value) -> Array | None:
    """Read the texts of a constant, an array of objects in its shape; None where it has none or
    they do not fit the shape.
    """
    raw = None if value.buffer is None or not value.is_constant else value.buffer.data
    if value.dtype != TensorType.STRING or raw is None:
        return None
    texts = decode(raw)
    if texts is None or len(texts) != element_count(value.dims):
        return None
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(value.dims)
