"""CONV_3D_TRANSPOSE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose, check_output
from luciole.ir.rules import integers
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.conv_3d import taps
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference


@reference(Conv3DTranspose, TensorType.FLOAT32)
def conv_3d_transpose(
    op: Conv3DTranspose, output_shape: Array, filter: Array, x: Array, bias: Array | None
) -> Array:
    """Multiply matrices once for each tap of the filter."""
    sizes = check_output(op, integers(output_shape, "output_shape", 5), x.shape, filter.shape)
    y = np.zeros(affordable(op, sizes), x.dtype)
    for tap, wide, narrow in taps(op, sizes[1:4], x.shape[1:4], filter.shape):
        y[wide] += x[narrow] @ filter[tap].T
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)
