"""RFFT2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rfft2d import Rfft2d, transformed
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable, set_aside
from luciole.kernels.core.registry import reference

PLAN_BYTES = 256
"""Memory of NumPy's pocketfft beside arrays for each element of an axis: 207 were measured, for the
prime 131,071.
"""


@reference(Rfft2d, TensorType.FLOAT32)
def rfft2d(op: Rfft2d, x: Array, fft_length: Array) -> Array:
    """Transform in double precision, rounded at the end."""
    lengths = integers(fft_length, "fft_length", 2)
    affordable(op, transformed(x.shape, lengths))
    with set_aside(PLAN_BYTES * max(lengths)):
        made = np.fft.rfft2(x.astype(np.float64), s=lengths, axes=(-2, -1))
    return made.astype(np.complex64)
