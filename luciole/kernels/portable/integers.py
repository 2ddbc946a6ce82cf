"""C forms of operators on quantized tensors: TFLite's fixed point, and tables of all 256 bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import quantize_multiplier, reduced_multiplier
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Signature
from luciole.kernels.core.evaluation import computed
from luciole.kernels.fixed_point.compiled import ONE, Factor
from luciole.kernels.layers.int8.rescale import Rescaling
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable

INT8S = ((TensorType.INT8,), (TensorType.INT8, TensorType.INT8, TensorType.INT32))
"""Element types of input, weights and bias (or none) of layers of signed bytes."""

INT8_BY_4 = tuple((TensorType.INT8, TensorType.INT4, *bias) for bias in ((), (TensorType.INT32,)))
"""The same, of weights of 4 bits: programs hold each in a byte."""

_WEIGHTS = (TensorType.INT8, TensorType.INT4)
INT16S: tuple[Signature, ...] = (
    *((TensorType.INT16, weights) for weights in _WEIGHTS),
    *((TensorType.INT16, w, b) for w in _WEIGHTS for b in (TensorType.INT64, TensorType.INT32)),
)
"""Element types of layers of halfwords under weights of bytes, or of 4 bits."""

UINT8S = ((TensorType.UINT8,), (TensorType.UINT8, TensorType.UINT8, TensorType.INT32))
"""Element types of layers of bytes without a sign, whose weights have a zero point."""

LARGEST_SHORT = 2**15
"""The largest magnitude of a halfword."""

MOST_WIDE = 2**46
"""Sums below it, times multipliers of 15 bits, are far from the limits of 64 bits."""


def rescaled(
    to: Rescaling, weights: Array, bias: Array | None, sums_over: tuple[int, ...], *, wide: bool
) -> tuple[str, dict[str, Field]]:
    """Write the operands that scale sums to results: zero points, limits, and a factor for each
    output; and name the kind of functions that take them, see ``c/codes.h``.

    ``sums_over`` are the axes of the weights that a sum runs over; sums are int64 where they are
    ``wide``. Raises UnsupportedError where sums may leave the bits that they have.
    """
    kind = kind_of(to, weights, bias, sums_over, wide=wide)
    outputs = weights.size // max(element_count(tuple(weights.shape[a] for a in sums_over)), 1)
    multipliers, shifts = quantize_multiplier(np.broadcast_to(to.factors, outputs))
    tables: dict[str, Field] = {"multipliers": multipliers, "shifts": shifts}
    if wide:
        tables["multipliers"], tables["shifts"] = reduced_multiplier(multipliers, shifts)
    return kind, {**zeros(to), "weights": weights, "bias": bias, **tables}


def kind_of(
    to: Rescaling, weights: Array, bias: Array | None, sums_over: tuple[int, ...], *, wide: bool
) -> str:
    """Name the kind of functions for a layer. Raises UnsupportedError where none has sums that are
    large enough.
    """
    if to.dtype != TensorType.INT16:
        check_sums(to, weights, bias, sums_over)
        return to.dtype.name.lower()
    if to.weights_zero:
        raise UnsupportedError(f"weights have zero point {to.weights_zero}; in C, 0 is needed")
    sums = LARGEST_SHORT * np.abs(weights.astype(np.int64)).sum(axis=sums_over).ravel()
    most = sums + (0 if bias is None else np.abs(bias.astype(np.int64)).ravel())
    if most.max(initial=0) >= (MOST_WIDE if wide else 2**31):
        raise UnsupportedError(f"its sums may leave {46 if wide else 32} bits")
    if not wide:
        return "int16_bias_int32"
    return "int16" if sums.max(initial=0) < 2**31 else "int16_long"


def with_zeros(to: Rescaling, weights: Array, axis: int) -> dict[str, Field]:
    """Write weights as signed bytes, and the zero points that unsigned ones have then."""
    if to.dtype != TensorType.UINT8:
        return {"weights": weights, "zeros": None}
    points = np.broadcast_to(to.weights_zeros - SIGN, weights.shape[axis])
    return {"weights": (weights.astype(np.int16) - SIGN).astype(np.int8), "zeros": points}


def centred_in_c(to: Rescaling, weights: Array, axis: int) -> Array:
    """Return weights less their zero points, for functions that hold them so."""
    if to.dtype != TensorType.UINT8:
        return weights
    return to.centred_weights(weights, axis).astype(np.int16)


SIGN = 128
"""Distance of a byte without a sign from one that has it."""


def zeros(to: Rescaling) -> dict[str, Field]:
    """Write zero points and limits of a layer."""
    least, most = to.limits
    fields: dict[str, Field] = {"input_zero": to.input_zero, "result_zero": to.result_zero}
    return fields | {"least": least, "most": most}


def check_sums(
    to: Rescaling, weights: Array, bias: Array | None, sums_over: tuple[int, ...]
) -> int:
    """Find how large sums may be. Raises UnsupportedError for sums beyond 32 bits, and for zero
    points that are none.
    """
    largest = 255
    (axis,) = set(range(weights.ndim)) - set(sums_over)
    sizes = np.abs(to.centred_weights(weights, axis).astype(np.int64)).sum(axis=sums_over).ravel()
    if to.dtype == TensorType.UINT8:  # products with weights and with zero points are added apart
        sizes = np.maximum(sizes, 256 * element_count(tuple(weights.shape[a] for a in sums_over)))
    most = largest * sizes + (0 if bias is None else np.abs(bias.astype(np.int64)).ravel())
    points = [int(zero) for zero in to.weights_zeros]
    check_grid((to.input_zero, *points, to.result_zero), to.limits, to.dtype)
    if most.max(initial=0) >= 2**31:
        raise UnsupportedError("its sums may leave 32 bits")
    return int(most.max(initial=0))


def check_grid(
    zeros: Sequence[int], limits: tuple[int, int], dtype: TensorType = TensorType.INT8
) -> None:
    """Refuse zero points that the elements' type does not have (of 16 bits, all but 0), and limits
    between which there is nothing. Raises UnsupportedError.
    """
    low, high = limits_of(dtype)
    least, most = (0, 0) if dtype == TensorType.INT16 else (low, high)
    if any(not least <= z <= most for z in zeros) or not low <= limits[0] <= limits[1] <= high:
        raise UnsupportedError(f"a zero point, or a limit of its results, is none of {dtype.name}")


def limits_of(dtype: TensorType) -> tuple[int, int]:
    """Return the least and the largest integer of a type."""
    limits = np.iinfo(NUMPY[dtype])
    return int(limits.min), int(limits.max)


def factor_fields(name: str, factor: Factor) -> dict[str, Field]:
    """Write a factor as a multiplier below 2^31 and a shift: that of ONE is 2^30."""
    multiplier, shift = (int(number) for number in factor)
    if multiplier == ONE[0]:
        multiplier, shift = multiplier // 2, shift + 1
    return {f"{name}multiplier": multiplier, f"{name}shift": shift}


def tabulated(op: Op, context: PortableContext) -> Sequence[CCall]:
    """Compute a function of bytes for all 256 of them, once and for all, by the reference; what it
    refuses (roots of negative numbers) becomes the result's lowest byte.
    """
    del context
    x, y = op.required(0), op.results[0]
    table = _table(op, np.arange(256, dtype=np.uint8).view(NUMPY[x.dtype]))
    fields: dict[str, Field] = {"count": element_count(x.dims)}
    if y.dtype == TensorType.FLOAT32:
        return [CCall("luc_floats_of_bytes", {**fields, "table": table}, (x,), (y,))]
    if table.itemsize != 1:
        raise LucioleError(f"results are {table.dtype}, not bytes")
    return [CCall("luc_bytes_of_bytes", {**fields, "table": table.view(np.uint8)}, (x,), (y,))]


def _table(op: Op, codes: Array) -> Array:
    """Compute all results, one by one where some are refused. Raises what all are refused with."""
    try:
        return computed(op, [codes])[0]
    except LucioleError:
        results = [_single(op, codes[k : k + 1]) for k in range(len(codes))]
        made = [result for result in results if result is not None]
        if not made:
            raise
        lowest = np.iinfo(made[0].dtype).min
        return np.array([lowest if r is None else r[0] for r in results], made[0].dtype)


def _single(op: Op, code: Array) -> Array | None:
    try:
        return computed(op, [code])[0]
    except LucioleError:
        return None


def tabulate(cls: type[Op], *types: TensorType) -> None:
    """Register the C form of a function of bytes."""
    portable(cls, *types)(tabulated)
