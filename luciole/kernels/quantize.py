"""QUANTIZE and DEQUANTIZE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.analysis.fixed_point import quantize_multiplier
from luciole.ir.dtypes import NUMPY, PACKED
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import Affine, per_tensor
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.reasons import UNFIT, Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import conversions, lookups, scaling
from luciole.kernels.elements.scaling import Scaling, scaling_in_c
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.integers import check_grid, limits_of, tabulate, tabulated

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

WIDER = (*TYPES, TensorType.INT32)
"""Integers that are brought to other scales."""

LARGEST_ZERO_POINT = 1 << 16
"""Bound of zero points beyond 16 bits; sums and differences up to here are exact in single
precision.
"""


@reference(Quantize, TensorType.FLOAT32)
def quantize(op: Quantize, x: Array) -> Array:
    """Compute round(x / scale) + zero point, saturated. Raises UnsupportedError for other result
    types.
    """
    to = op.output.dtype
    if to not in TYPES:
        have = ", ".join(t.name for t in TYPES)
        raise UnsupportedError(f"no quantization to {to.name}; there is {have}")
    return Affine.of(op.output, "the result").encode(x)


@reference(Quantize, *WIDER)
def requantize(op: Quantize, x: Array) -> Array:
    """Bring integers from one scale and zero point to others. Raises UnsupportedError for other
    result types.
    """
    to = op.output.dtype
    if to not in WIDER:
        have = ", ".join(t.name for t in WIDER)
        raise UnsupportedError(f"no quantization of integers to {to.name}; there is {have}")
    return between_grids(op).scaled(x, to)


def between_grids(op: Quantize) -> Scaling:
    """Read the grids of the operand and of the result."""
    scale, zero_point = per_tensor(op.input, "the input")
    to_scale, to_zero = per_tensor(op.output, "the result")
    factor = quantize_multiplier(float(scale) / float(to_scale))
    limits = np.iinfo(NUMPY[op.output.dtype])
    return Scaling(zero_point, to_zero, (limits.min, limits.max), factor, factor)


@native(Quantize, *WIDER)
def build_requantize(op: Quantize, context: Context) -> Built:
    """Look bytes up that become bytes, and scale all others."""
    x, y = context.operands[0], context.results[0]
    if x is None or op.output.dtype not in WIDER:
        return None
    if x.itemsize == y.itemsize == 1:
        return lookups.step(op, x, y)
    factors = accepted(between_grids, op)
    return factors if isinstance(factors, Declined) else scaling.step(factors, x, y)


@reference(Dequantize, *TYPES, *PACKED)
def dequantize(op: Dequantize, x: Array) -> Array:
    """Compute scale (x - zero point)."""
    return Affine.of(op.input, "the input", only_read=True).decode(x).astype(np.float32)


@reference(Dequantize, TensorType.FLOAT16, TensorType.FLOAT32)
def widen(op: Dequantize, x: Array) -> Array:
    """Convert to single precision; numbers stay the same, also where constants were decoded."""
    return x.astype(np.float32)


@native(Quantize, TensorType.FLOAT32)
def build_quantize(op: Quantize, context: Context) -> Built:
    """Quantize with one scale for all elements."""
    x, y = context.operands[0], context.results[0]
    if x is None or op.output.dtype not in TYPES:
        return None
    grid = _single(op.output)
    if isinstance(grid, Declined):
        return grid
    return conversions.to_nearest(conversions.KINDS[op.output.dtype], x, y, *grid)


@native(Dequantize, *TYPES)
def build_dequantize(op: Dequantize, context: Context) -> Built:
    """Dequantize with one scale for all elements."""
    x, y = context.operands[0], context.results[0]
    grid = _single(op.input)
    if isinstance(grid, Declined):
        return grid
    if x is None:
        return None
    return conversions.to_floats(conversions.KINDS[op.input.dtype], x, y, *grid)


def _single(value: Value) -> tuple[float, int] | Declined:
    """Return scale and zero point of a value that has one of each; Declined where it has others."""
    grid = accepted(per_tensor, value, "the tensor")
    if isinstance(grid, Declined):
        return grid
    if abs(grid[1]) > LARGEST_ZERO_POINT:
        return UNFIT
    return float(grid[0]), grid[1]


tabulate(Dequantize, TensorType.INT8, TensorType.UINT8)


@portable(Dequantize, TensorType.INT16)
def dequantize_in_c(op: Dequantize, context: PortableContext) -> list[CCall]:
    """Call the function that makes halfwords floats."""
    del context
    scale, zero = per_tensor(op.input, "the input")
    check_grid((zero,), (0, 0), TensorType.INT16)
    fields: dict[str, Field] = {"count": element_count(op.input.dims), "scale": float(scale)}
    return [CCall("luc_dequantize_int16", {**fields, "zero": zero}, (op.input,), op.results)]


@portable(Quantize, TensorType.INT8, TensorType.UINT8, TensorType.INT16)
def requantize_in_c(op: Quantize, context: PortableContext) -> list[CCall]:
    """Look bytes up that become bytes, and scale all others."""
    if {op.input.dtype, op.output.dtype} <= {TensorType.INT8, TensorType.UINT8}:
        return list(tabulated(op, context))
    return [scaling_in_c(between_grids(op), op.input, op.output)]


@portable(Quantize, TensorType.FLOAT32)
def quantize_in_c(op: Quantize, context: PortableContext) -> list[CCall]:
    """Call the function that rounds floats to integers."""
    del context
    dtype = op.output.dtype
    if dtype not in TYPES:
        raise UnsupportedError(f"floats to {dtype.name} have no C form")
    scale, zero = per_tensor(op.output, "the result")
    least, most = limits_of(dtype)
    check_grid((zero,), (least, most), dtype)
    fields: dict[str, Field] = {"count": element_count(op.input.dims), "scale": float(scale)}
    fields |= {"zero": zero, "least": least, "most": most}
    return [CCall(f"luc_quantize_{dtype.name.lower()}", fields, (op.input,), op.results)]
