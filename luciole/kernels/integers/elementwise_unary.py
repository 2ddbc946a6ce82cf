"""Kernels of the unary element-wise operators on quantized tensors: integers of 8 or 16 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.ops import activations, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.quantization import is_affine, per_tensor, rounded
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import lookups
from luciole.kernels.fixed_point.arithmetic import multiply, quantize_multiplier, rounding_divide
from luciole.kernels.fixed_point.functions import inverse_root, saturated
from luciole.kernels.fixed_point.tables import Function, in_c, interpolated, looked_up, pieces

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16

_erfc, _exp, _expm1, _log, _tanh = map(in_c, ("erfcf", "expf", "expm1f", "logf", "tanhf"))


def parameters(op: Op) -> tuple[np.float32, int, np.float32, int]:
    """Return scale and zero point of the operand, then of the result."""
    given = op.operands[0]
    assert given is not None
    return *per_tensor(given, "the input"), *per_tensor(op.output, "the result")


def _by_table(cls: type[Op], function: Function, *types: TensorType) -> None:
    """Register a function of real numbers, computed by a table."""

    @reference(cls, *types)
    def kernel(op: Op, x: Array) -> Array:
        given = op.operands[0]
        assert given is not None
        return looked_up(function, x, given, op.output)

    lookups.register(cls, *_bytes(types))


def _bytes(types: Sequence[TensorType]) -> list[TensorType]:
    """Leave out 16 bits."""
    return [given for given in types if given != INT16]


def _logarithm(op: elementwise_unary.Log, least: int) -> Function:
    """Return the logarithm with the lowest result for what is not positive."""
    to, to_zero = per_tensor(op.output, "the result")
    lowest = np.float32(least - to_zero) * to
    return lambda x: np.where(x > 0, _log(np.where(x > 0, x, 1)), lowest)


@reference(elementwise_unary.Log, INT8, INT16)
def log(op: elementwise_unary.Log, x: Array) -> Array:
    """Look the logarithm up in a table."""
    return looked_up(_logarithm(op, int(np.iinfo(x.dtype).min)), x, op.x, op.output)


lookups.register(elementwise_unary.Log, INT8)


@reference(Gelu, INT8, UINT8, INT16)
def gelu(op: Gelu, x: Array) -> Array:
    """Look the function up in a table."""
    return looked_up(_gelu_by_tanh if op.approximate else _gelu, x, op.features, op.output)


lookups.register(Gelu, INT8, UINT8)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * _erfc(x * -math.sqrt(0.5)))


def _gelu_by_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return np.asarray(0.5 * x * (1 + _tanh(inner)))


_by_table(activations.Tanh, _tanh, INT8, UINT8)
_by_table(activations.Logistic, lambda x: 1 / (1 + _exp(-x)), INT8, UINT8)
_by_table(activations.Elu, lambda x: np.where(x < 0, _expm1(x), x), INT8)
_by_table(elementwise_unary.Exp, _exp, INT8, INT16)


def _rectifier(cls: type[activations.Clamp], *types: TensorType) -> None:
    """Register an operator that cuts x off at two real numbers on the result's grid."""
    low, high = cls.limits

    @reference(cls, *types)
    def kernel(op: activations.Clamp, x: Array) -> Array:
        scale, zero_point, to, to_zero = parameters(op)
        limits = np.iinfo(x.dtype)
        edges = rounded(np.array([low, min(high, 2.0**30 * float(to))], np.float32) / to) + to_zero
        scaled = multiply(x.astype(np.int64) - zero_point, *quantize_multiplier(scale / to))
        cut = np.clip(scaled.astype(np.int64) + to_zero, *edges.astype(np.int64))
        return np.clip(cut, limits.min, limits.max).astype(x.dtype)

    lookups.register(cls, *_bytes(types))


_rectifier(activations.Relu, INT8, UINT8, INT16)
_rectifier(activations.Relu6, INT8, UINT8, INT16)
_rectifier(activations.ReluN1To1, INT8, UINT8)
_rectifier(activations.Relu0To1, INT8, UINT8)


@reference(LeakyRelu, INT8, UINT8, INT16)
def leaky_relu(op: LeakyRelu, x: Array) -> Array:
    """Scale x where it is not negative, else alpha x; each has a factor of its own."""
    scale, zero_point, to, to_zero = parameters(op)
    steps = x.astype(np.int64) - zero_point
    kept = multiply(steps, *quantize_multiplier(scale / to))
    slope, shift = quantize_multiplier(scale * np.float32(op.alpha) / to)
    bent = np.sign(slope) * multiply(steps, np.abs(slope), shift)
    return saturated(np.where(steps >= 0, kept, bent), to_zero, x)


lookups.register(LeakyRelu, INT8, UINT8)


@reference(elementwise_unary.Abs, INT8, INT16)
def abs_(op: elementwise_unary.Abs, x: Array) -> Array:
    """Compute |x| on the result's grid; 16 bits without scales stay as they are."""
    if x.dtype == np.int16 and not is_affine(op.x):
        return np.abs(x)
    scale, zero_point, to, to_zero = parameters(op)
    size = np.abs(x.astype(np.int64) - zero_point)
    return saturated(
        size if scale == to else multiply(size, *quantize_multiplier(scale / to)), to_zero, x
    )


lookups.register(elementwise_unary.Abs, INT8)


ROOT_BITS = 20
"""Fraction bits of 1 / sqrt(x) before it is brought to the result's grid."""


@reference(elementwise_unary.Rsqrt, INT8)
def rsqrt(op: elementwise_unary.Rsqrt, x: Array) -> Array:
    """Compute 1 / sqrt(x), the largest result for 0. Raises LucioleError for what is negative."""
    scale, zero_point, to, to_zero = parameters(op)
    steps = _not_negative(x, zero_point)
    factor, shift = quantize_multiplier(1 / float(np.sqrt(scale) * to))
    inverse, down = inverse_root(steps)
    root = multiply(np.ones_like(steps), inverse, down + ROOT_BITS)
    found = multiply(root, factor, shift - ROOT_BITS)
    return np.where(steps == 0, np.int8(127), saturated(found, to_zero, x))


lookups.register(elementwise_unary.Rsqrt, INT8)


def _not_negative(x: Array, zero_point: int) -> Array:
    steps = x.astype(np.int64) - zero_point
    wrong = np.count_nonzero(steps < 0)
    if wrong:
        raise LucioleError(f"{wrong} of {x.size} numbers are negative, roots need others")
    return steps


@reference(elementwise_unary.Sqrt, INT8, INT16)
def sqrt(op: elementwise_unary.Sqrt, x: Array) -> Array:
    """Compute the root in single precision, without its fraction. Raises LucioleError for what is
    negative.
    """
    scale, zero_point, to, to_zero = parameters(op)
    numbers = _not_negative(x, zero_point).astype(np.float32) * scale
    return saturated(np.minimum(np.sqrt(numbers) / to, 2.0**30), to_zero, x)


lookups.register(elementwise_unary.Sqrt, INT8)


@reference(elementwise_unary.Rsqrt, INT16)
def rsqrt_16(op: elementwise_unary.Rsqrt, x: Array) -> Array:
    """Interpolate 1 / sqrt(x) in a table; the largest result for 0. Raises LucioleError for what is
    negative.
    """
    scale, zero_point, to, to_zero = parameters(op)
    _not_negative(x, zero_point)
    largest = np.float32(2**15 - 1) * to
    table = pieces(
        lambda v: np.where(v > 0, 1 / np.sqrt(np.abs(v)), largest),
        (scale, zero_point),
        (to, to_zero),
    )
    return interpolated(table, x)


@reference(activations.HardSwish, INT8, UINT8)
def hard_swish(op: activations.HardSwish, x: Array) -> Array:
    """Compute x min(max(x + 3, 0), 6) / 6 in numbers of 16 bits, as TFLite computes it."""
    scale, zero_point, to, to_zero = parameters(op)
    fine = scale * np.float32(1 / 128)
    out, out_shift = _short(fine / to)
    bent, bent_shift = _short(fine / np.float32(3 / 32768))
    if out_shift > 0:
        raise LucioleError(f"the result's scale {to} is too small for the input's {scale}")
    steps = (x.astype(np.int64) - zero_point) << 7
    value = _high_16(steps, out)
    slope = _shifted_16(steps, max(bent_shift - 1, 0))
    slope = _shifted_16(_high_16(slope, bent), int(bent_shift > 0))
    slope = (rounding_divide(slope, max(-bent_shift, 0)).astype(np.int64) + 2**15) >> 1
    product = slope * value
    high = np.sign(product) * (np.abs(product) >> 15)
    return saturated(rounding_divide(high, -out_shift), to_zero, x)


lookups.register(activations.HardSwish, INT8, UINT8)


def _short(factor: np.float32) -> tuple[int, int]:
    """Split a factor into a multiplier of 15 bits and its shift."""
    multiplier, shift = quantize_multiplier(factor)
    return min((int(multiplier) + (1 << 15)) >> 16, 2**15 - 1), int(shift)


def _high_16(x: Array, multiplier: int) -> Array:
    """Compute x multiplier / 2^15, halves up."""
    return np.asarray((x * multiplier + (1 << 14)) >> 15)


def _shifted_16(x: Array, bits: int) -> Array:
    """Compute x 2^bits, saturated at 16 bits."""
    return np.asarray(np.clip(x << bits, -(2**15), 2**15 - 1))
