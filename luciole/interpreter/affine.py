"""Arrays of real numbers that callers give, as a model's inputs store them."""

from __future__ import annotations

import numpy as np

from luciole.interpreter.errors import InputError
from luciole.ir import Array, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.names import called
from luciole.ir.quantization import affine_of

REAL = frozenset(np.dtype(t) for t in (np.uint8, np.float32, np.float64))
"""Types of arrays of real numbers that callers have: images, and what NumPy computes in."""


def takes_real(value: Value) -> bool:
    """Return whether an input takes real numbers of any of these types: a float32 or a quantized
    one.
    """
    return NUMPY.get(value.dtype) == np.float32 or affine_of(value) is not None


def as_input(value: Value, array: Array) -> Array:
    """Convert real numbers to the type of an input that ``takes_real``; other arrays, and those of
    the input's own type already, stay as they are. Raises InputError for NaN, which has no code.
    """
    if array.dtype not in REAL or array.dtype == NUMPY.get(value.dtype) or not takes_real(value):
        return array
    numbers, affine = array.astype(np.float32), affine_of(value)
    if affine is None:
        return numbers
    if np.isnan(numbers).any():
        raise InputError(f"input {called(value)!r} is quantized: NaN has no code")
    return affine.encode(numbers.astype(np.float64))
