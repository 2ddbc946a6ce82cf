"""RFFT2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rfft2d import Rfft2d, transformed
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference


@reference(Rfft2d, TensorType.FLOAT32)
def rfft2d(op: Rfft2d, x: Array, fft_length: Array) -> Array:
    """Transform in double precision, rounded at the end."""
    lengths = integers(fft_length, "fft_length", 2)
    affordable(op, transformed(x.shape, lengths))
    return np.fft.rfft2(x.astype(np.float64), s=lengths, axes=(-2, -1)).astype(np.complex64)
