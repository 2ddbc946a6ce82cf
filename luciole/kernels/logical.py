"""Kernels of the logic of truth values."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.logical import LogicalAnd, LogicalNot, LogicalOr
from luciole.kernels.core.registry import reference


@reference(LogicalOr, TensorType.BOOL)
def logical_or(op: LogicalOr, x: Array, y: Array) -> Array:
    """Either or both."""
    return np.logical_or(x, y)


@reference(LogicalAnd, TensorType.BOOL)
def logical_and(op: LogicalAnd, x: Array, y: Array) -> Array:
    """Both."""
    return np.logical_and(x, y)


@reference(LogicalNot, TensorType.BOOL)
def logical_not(op: LogicalNot, x: Array) -> Array:
    """The opposite."""
    return np.logical_not(x)
