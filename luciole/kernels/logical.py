"""Kernels of the logic of truth values."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.logical import LogicalAnd, LogicalNot, LogicalOr
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import lookups, mixed
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable


@reference(LogicalOr, TensorType.BOOL)
def logical_or(op: LogicalOr, x: Array, y: Array) -> Array:
    """Return where either or both are true."""
    return np.logical_or(x, y)


@reference(LogicalAnd, TensorType.BOOL)
def logical_and(op: LogicalAnd, x: Array, y: Array) -> Array:
    """Return where both are true."""
    return np.logical_and(x, y)


@reference(LogicalNot, TensorType.BOOL)
def logical_not(op: LogicalNot, x: Array) -> Array:
    """Turn each element into its opposite."""
    return np.logical_not(x)


lookups.register(LogicalNot, TensorType.BOOL)


@native(LogicalOr, TensorType.BOOL)
def build_or(op: LogicalOr, context: Context) -> NativeStep | None:
    """Ask number by number."""
    x, y = context.operands
    return mixed.compare(mixed.Test.OR, x, y, context.results[0])


@native(LogicalAnd, TensorType.BOOL)
def build_and(op: LogicalAnd, context: Context) -> NativeStep | None:
    """Ask number by number."""
    x, y = context.operands
    return mixed.compare(mixed.Test.AND, x, y, context.results[0])


@portable(LogicalOr, TensorType.BOOL)
@portable(LogicalAnd, TensorType.BOOL)
def in_c(op: LogicalOr | LogicalAnd, context: PortableContext) -> list[CCall]:
    """Ask number by number."""
    del context
    function = "or" if isinstance(op, LogicalOr) else "and"
    return plain.pair_calls(function, op.x, op.y, op.output)
