"""Microscaling (MX): blocks of 32 numbers along an axis, whose small elements share a power of two.

Source: Open Compute Project, OCP Microscaling Formats (MX) Specification, version 1.0, 2023,
sections 5 and 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import MICROSCALED, Array
from luciole.ir.errors import LucioleError
from luciole.ir.value import Value
from luciole.schema.enums import TensorType
from luciole.schema.tables import MXQuantization

BLOCK = 32
"""Numbers that share a scale."""

LEAST_EXPONENT, MOST_EXPONENT = -127, 127
"""Exponents of scales, which have eight bits (E8M0)."""


@dataclass(frozen=True)
class _Element:
    """An element type: the exponent of its largest number, that number, its fraction bits, and the
    exponent from which its steps stay the same.
    """

    exponent: int
    largest: float
    bits: int
    least: int


_ELEMENTS = {
    TensorType.MXFP4: _Element(exponent=2, largest=6.0, bits=1, least=0),
    TensorType.MXINT8: _Element(exponent=0, largest=127 / 64, bits=6, least=0),
}


def axis_of(value: Value) -> int | None:
    """Return the axis along which a tensor has blocks, None where it is quantized in another
    way.
    """
    table = value.quantization
    details = None if table is None else table.details
    return details.axis if isinstance(details, MXQuantization) else None


def in_blocks(x: Array, dtype: TensorType, axis: int) -> NDArray[np.float32]:
    """Round float32 numbers to the ones of blocks along an axis, halves to even, saturated.

    A block with a number that is not finite is NaN. Raises LucioleError for an axis that is not
    there.
    """
    if not -x.ndim <= axis < x.ndim:
        raise LucioleError(f"blocks are along axis {axis}, there are {x.ndim} axes")
    assert dtype in MICROSCALED
    element, rows = _ELEMENTS[dtype], np.moveaxis(x, axis, -1)
    whole = rows.shape[-1] // BLOCK * BLOCK
    blocks = rows[..., :whole].reshape(*rows.shape[:-1], whole // BLOCK, BLOCK)
    rounded = np.empty(rows.shape, np.float32)
    rounded[..., :whole] = _rounded(blocks, element).reshape(*rows.shape[:-1], whole)
    rounded[..., whole:] = _rounded(rows[..., whole:], element)
    return np.ascontiguousarray(np.moveaxis(rounded, -1, axis))


def _rounded(blocks: Array, element: _Element) -> NDArray[np.float64]:
    """Scale each block, a row of the last axis, by a power of two, round its elements, and scale
    them back.
    """
    blocks = blocks.astype(np.float64)
    largest = np.abs(blocks).max(-1, keepdims=True, initial=0)
    finite = np.isfinite(largest)
    _, exponent = np.frexp(np.where(finite & (largest > 0), largest, 1.0))
    shared = np.clip(exponent - 1 - element.exponent, LEAST_EXPONENT, MOST_EXPONENT)
    scaled = np.where(finite, np.ldexp(np.where(finite, blocks, 0), -shared), 0)
    _, own = np.frexp(np.where(scaled == 0, 1.0, scaled))
    step = np.ldexp(1.0, np.maximum(own - 1, element.least) - element.bits)
    nearest = np.clip(np.rint(scaled / step) * step, -element.largest, element.largest)
    return np.where(finite, np.ldexp(nearest, shared), np.nan)
