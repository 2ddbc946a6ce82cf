"""Borders around tensors: what they hold, and slabs of them for compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, LucioleError, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.kernels.allocation import placed
from luciole.kernels.integers.fixed_point import is_affine, per_tensor

AFFINE = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def padding_value(value: Value) -> int:
    """What stands for 0 in a tensor: its zero point where it is quantized, else 0.

    Raises LucioleError for several scales, and for a zero point that the element type does not
    hold.
    """
    if value.dtype not in AFFINE or not is_affine(value):
        return 0
    limits = np.iinfo(NUMPY[value.dtype])
    _, point = per_tensor(value, f"tensor {value.name!r}")
    if not limits.min <= point <= limits.max:
        raise LucioleError(f"tensor {value.name!r} has zero point {point}, no {value.dtype.name}")
    return point


def inside(shape: Sequence[int], borders: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """What lies between the borders of a tensor, of which ``shape`` is left without them."""
    return tuple(slice(b, b + n) for n, (b, _) in zip(shape, borders, strict=True))


def slabs(
    whole: Array, within: tuple[slice, ...], value: Array
) -> tuple[list[tuple[Array, Array]], list[Array]]:
    """What lies around a box, as disjoint views with what to copy into them, and the arrays that
    these are views of. The box's slices have a start and a stop along all axes they cut.
    """
    moved, owns = [], []
    for axis, cut in enumerate(within):
        start, stop, _ = cut.indices(whole.shape[axis])
        for beside in (slice(0, start), slice(stop, None)):
            slab = whole[(*within[:axis], beside)]
            owns.append(placed(np.full(slab.shape[axis:], value)))
            moved.append((slab, np.broadcast_to(owns[-1], slab.shape)))
    return moved, owns
