"""Tell the tensors that hold floats, which may become integers."""

from __future__ import annotations

from luciole.ir.value import Value
from luciole.schema.enums import TensorType


def is_between(value: Value) -> bool:
    """Return whether a tensor holds numbers that are computed, neither a constant nor a state."""
    return is_float(value) and not value.is_constant and not value.is_variable


def is_float(value: Value | None) -> bool:
    """Return whether a tensor, if there is one, holds numbers that may become integers."""
    return value is not None and value.dtype == TensorType.FLOAT32
