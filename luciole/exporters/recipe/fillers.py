"""Choose the filler that a recipe gives a constant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import strings
from luciole.ir.dtypes import NUMPY, Array, byte_count, unpack
from luciole.ir.value import element_count
from luciole.schema.enums import TensorType
from luciole.schema.tables import Tensor


class Filler(NamedTuple):
    """A filler's tag and its arguments, which are texts in recipes."""

    tag: str
    arguments: list[str]


def filler_of(raw: NDArray[np.uint8], tensor: Tensor, most_values: int) -> Filler | None:
    """Find the filler that makes a tensor's buffer: exactly where it has at most ``most_values``
    elements or the same value everywhere, else with its mean and deviation; None where its type has
    no filler or its length does not fit.
    """
    if tensor.type == TensorType.STRING:
        texts = strings.decode(raw)
        return None if texts is None else Filler("explicit", [*map(strings.shown, texts)])
    values = _values(raw, tensor)
    if values is None:
        return None
    if values.size > 1 and _all_equal(values):
        return Filler("constant", [_text(values[0])])
    if values.size <= most_values or values.dtype.kind not in "fiu":
        return Filler("explicit", [_text(v) for v in values])
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    mean, deviation = (finite.mean(), finite.std()) if finite.size else (0.0, 0.0)
    return Filler("gaussian", [f"{mean:.6g}", f"{deviation:.6g}"])


def _values(raw: NDArray[np.uint8], tensor: Tensor) -> Array | None:
    """Read all elements of a buffer, in a row. A sparse tensor has as many as its buffer holds."""
    dtype = tensor.type
    if tensor.sparsity is not None:
        fits = dtype in NUMPY and len(raw) % NUMPY[dtype].itemsize == 0
        return raw.view(NUMPY[dtype]) if fits else None
    count = element_count(() if tensor.shape is None else tuple(tensor.shape.tolist()))
    return unpack(raw, dtype, (count,)) if byte_count(dtype, count) == len(raw) else None


def _all_equal(values: Array) -> bool:
    """Compare elements by their bytes: 0 and -0 are two values."""
    rows = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    return bool((rows == rows[0]).all())


def _text(value: np.generic) -> str:
    """Find the shortest text that reads as the same value."""
    if isinstance(value, np.bool_):
        return "1" if value else "0"
    return str(value).strip("()")
