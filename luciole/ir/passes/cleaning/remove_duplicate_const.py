"""Let equal constants be one."""

from __future__ import annotations

from collections.abc import Hashable

from luciole.ir.graph import Graph
from luciole.ir.quantization import affine_of
from luciole.ir.value import Value


def remove_duplicate_const(graph: Graph) -> bool:
    """Constants of the same type, shape, scales and contents -> the first of them."""
    first: dict[Hashable, Value] = {}
    changed = False
    for value in [v for v in graph.values if v.is_constant and v.users]:
        key = _contents(value)
        if key is None or value.is_output:
            continue
        other = first.setdefault(key, value)
        if other is not value:
            value.replace_with(other)
            changed = True
    return changed


def _contents(value: Value) -> Hashable | None:
    """List all that matters of a constant; None for one that is kept in a way of its own."""
    raw = value.buffer.data if value.buffer is not None else None
    special = value.sparsity is not None or any(value.block_tensors)
    if raw is None or special:
        return None
    affine = affine_of(value)
    parts = () if affine is None else (affine.axis, *(p.tobytes() for p in affine.parameters))
    return value.dtype, value.dims, parts, raw.tobytes()
