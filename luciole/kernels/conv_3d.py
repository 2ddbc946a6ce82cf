"""CONV_3D kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.conv_3d import Conv3D, Windows3D, dilations, strides
from luciole.ir.rules import padding_before, settled, window
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.registry import reference
from luciole.schema.enums import Padding

Taps = Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]
"""The place of a filter's tap, the elements that it meets and those of the other side."""


@reference(Conv3D, TensorType.FLOAT32)
def conv_3d(op: Conv3D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Multiply matrices once for each tap of the filter."""
    outer = settled(
        tuple(
            window(*step, op.padding)
            for step in zip(x.shape[1:4], filter.shape[:3], strides(op), dilations(op), strict=True)
        )
    )
    y = np.zeros((len(x), *outer, filter.shape[4]), x.dtype)
    for tap, wide, narrow in taps(op, x.shape[1:4], outer, filter.shape):
        y[narrow] += x[wide] @ filter[tap]
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


def taps(
    op: Windows3D, wide: tuple[int, ...], narrow: tuple[int, ...], filter: tuple[int, ...]
) -> Taps:
    """Yield every tap with the slices of the wide side and of the narrow side that it connects.
    Padding is left out; a filter without elements has no taps.
    """
    if 0 in filter:
        return
    steps = zip(wide, narrow, filter[:3], strides(op), dilations(op), strict=True)
    places = [[*_along(op.padding, *step)] for step in steps]
    for tap in product(*map(range, filter[:3])):
        pairs = [places[axis][k] for axis, k in enumerate(tap)]
        yield tap, (slice(None), *(p[0] for p in pairs)), (slice(None), *(p[1] for p in pairs))


def _along(
    padding: Padding, wide: int, narrow: int, kernel: int, stride: int, dilation: int
) -> Iterator[tuple[slice, slice]]:
    """Yield for each tap its slices along one axis: element i of the narrow side belongs to element
    i stride + offset of the wide one.
    """
    before = padding_before(wide, kernel, stride, dilation, padding)
    for k in range(kernel):
        offset = k * dilation - before
        first = max(-(offset // stride), 0)
        end = max(min(narrow, -((offset - wide) // stride)), first)
        start, stop = (first * stride + offset, end * stride + offset) if first < end else (0, 0)
        yield slice(start, min(stop, wide), stride), slice(first, end)
