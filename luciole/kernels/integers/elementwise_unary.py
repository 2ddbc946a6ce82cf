"""Kernels of the unary element-wise operators on quantized tensors: integers of 8 or 16 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.analysis.fixed_point import multiply, quantize_multiplier, rounding_divide
from luciole.ir.dtypes import NUMPY, tensor_type
from luciole.ir.ops import activations, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.quantization import is_affine, per_tensor, rounded
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import lookups, scaling
from luciole.kernels.elements.scaling import Scaling
from luciole.kernels.fixed_point.compiled import ONE
from luciole.kernels.fixed_point.functions import inverse_root, saturated
from luciole.kernels.fixed_point.tables import Function, interpolated, looked_up, pieces
from luciole.kernels.fixed_point.tables import in_c as of_c
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class

_erfc, _exp, _expm1, _log, _tanh = map(of_c, ("erfcf", "expf", "expm1f", "logf", "tanhf"))


def parameters(op: Op) -> tuple[np.float32, int, np.float32, int]:
    """Return scale and zero point of the operand, then of the result."""
    return *per_tensor(op.required(0), "the input"), *per_tensor(op.output, "the result")


def _by_table(cls: type[Op], function: Function, *types: TensorType) -> None:
    """Register a function of real numbers, computed by a table."""

    @reference(cls, *types)
    def kernel(op: Op, x: Array) -> Array:
        return looked_up(function, x, op.required(0), op.output)

    lookups.register(cls, *types)
    if INT16 in types:
        _pieces_in_c(cls, lambda op: function)


def _pieces_in_c(cls: type[O], function: Callable[[O], Function]) -> None:
    """Register the C form of a function of 16 bits: lines between the entries of its table."""

    @portable(cls, INT16)
    def in_c(op: O, context: PortableContext) -> list[CCall]:
        del context
        x, y = op.required(0), op.results[0]
        grid, to = per_tensor(x, "the input"), per_tensor(y, "the result")
        fields: dict[str, Field] = {"count": element_count(x.dims)}
        fields["entries"] = pieces(function(op), grid, to)
        return [CCall("luc_interpolated", fields, (x,), (y,))]


def _logarithm(op: elementwise_unary.Log, least: int) -> Function:
    """Return the logarithm with the lowest result for what is not positive."""
    to, to_zero = per_tensor(op.output, "the result")
    lowest = np.float32(least - to_zero) * to
    return lambda x: np.where(x > 0, _log(np.where(x > 0, x, 1)), lowest)


@reference(elementwise_unary.Log, INT8, INT16)
def log(op: elementwise_unary.Log, x: Array) -> Array:
    """Look the logarithm up in a table."""
    return looked_up(_logarithm(op, int(np.iinfo(x.dtype).min)), x, op.x, op.output)


lookups.register(elementwise_unary.Log, INT8, INT16)
_pieces_in_c(elementwise_unary.Log, lambda op: _logarithm(op, -(2**15)))


@reference(Gelu, INT8, UINT8, INT16)
def gelu(op: Gelu, x: Array) -> Array:
    """Look the function up in a table."""
    return looked_up(_gelu_by_tanh if op.approximate else _gelu, x, op.features, op.output)


lookups.register(Gelu, INT8, UINT8, INT16)
_pieces_in_c(Gelu, lambda op: _gelu_by_tanh if op.approximate else _gelu)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * _erfc(x * -math.sqrt(0.5)))


def _gelu_by_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return np.asarray(0.5 * x * (1 + _tanh(inner)))


_by_table(activations.Tanh, _tanh, INT8, UINT8)
_by_table(activations.Logistic, lambda x: 1 / (1 + _exp(-x)), INT8, UINT8)
_by_table(activations.Elu, lambda x: np.where(x < 0, _expm1(x), x), INT8)
_by_table(elementwise_unary.Exp, _exp, INT8, INT16)


def _scales(
    cls: type[O], read: Callable[[O], Scaling], bytes_: Sequence[TensorType], *wider: TensorType
) -> None:
    """Register an operator that brings numbers from one grid to another. Bytes are looked up."""

    @reference(cls, *bytes_, *wider)
    def kernel(op: O, x: Array) -> Array:
        return read(op).scaled(x, tensor_type(x.dtype))

    @native(cls, *wider)
    def build(op: O, context: Context) -> Built:
        x, scale = context.operands[0], accepted(read, op)
        if isinstance(scale, Declined):
            return scale
        return None if x is None else scaling.step(scale, x, context.results[0])

    @portable(cls, *wider)
    def in_c(op: O, context: PortableContext) -> list[CCall]:
        del context
        return [scaling.scaling_in_c(read(op), op.required(0), op.results[0])]

    lookups.register(cls, *bytes_)


def _limits(op: Op) -> tuple[int, int]:
    limits = np.iinfo(NUMPY[op.result_dtypes()[0]])
    return limits.min, limits.max


def _rectifier(op: activations.Clamp) -> Scaling:
    """Cut x off at two real numbers on the result's grid."""
    scale, zero_point, to, to_zero = parameters(op)
    low, high = op.limits
    edges = rounded(np.array([low, min(high, 2.0**30 * float(to))], np.float32) / to) + to_zero
    cut = np.clip(edges.astype(np.int64), *_limits(op)).tolist()
    factor = quantize_multiplier(scale / to)
    return Scaling(zero_point, to_zero, tuple(cut), factor, factor)


for _clamp, _wider in (
    (activations.Relu, (INT16,)),
    (activations.Relu6, (INT16,)),
    (activations.ReluN1To1, ()),
    (activations.Relu0To1, ()),
):
    _scales(_clamp, _rectifier, (INT8, UINT8), *_wider)


def _leaky(op: LeakyRelu) -> Scaling:
    """Scale x where it is not negative, else alpha x; each has a factor of its own."""
    scale, zero_point, to, to_zero = parameters(op)
    above = quantize_multiplier(scale / to)
    slope, shift = quantize_multiplier(scale * np.float32(op.alpha) / to)
    below, sign = (np.abs(slope), shift), int(np.sign(slope))
    return Scaling(zero_point, to_zero, _limits(op), above, below, after=sign)


_scales(LeakyRelu, _leaky, (INT8, UINT8), INT16)


def _size(op: elementwise_unary.Abs) -> Scaling:
    """Compute |x| on the result's grid; 16 bits without scales stay as they are."""
    if op.x.dtype == INT16 and not is_affine(op.x):
        wrapping = (-(2**15), 2**15)
        return Scaling(0, 0, wrapping, ONE, ONE, before=-1)
    scale, zero_point, to, to_zero = parameters(op)
    factor = ONE if scale == to else quantize_multiplier(scale / to)
    return Scaling(zero_point, to_zero, _limits(op), factor, factor, before=-1)


_scales(elementwise_unary.Abs, _size, (INT8,), INT16)


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
    result = multiply(root, factor, shift - ROOT_BITS)
    return np.where(steps == 0, np.int8(127), saturated(result, to_zero, x))


lookups.register(elementwise_unary.Rsqrt, INT8)


def _not_negative(x: Array, zero_point: int) -> Array:
    steps = x.astype(np.int64) - zero_point
    wrong = int(np.count_nonzero(steps < 0))
    if wrong:
        raise _negative(wrong, x)
    return steps


def _negative(wrong: int, x: Array) -> LucioleError:
    return LucioleError(f"{wrong} of {x.size} numbers are negative, roots need others")


@native(elementwise_unary.Rsqrt, INT16)
@native(elementwise_unary.Sqrt, INT16)
def build_root(op: elementwise_unary.Unary, context: Context) -> Built:
    """Look a root up in a table of all integers, where those that have none are marked."""
    x, grids = context.operands[0], accepted(parameters, op)
    if isinstance(grids, Declined):
        return grids
    if x is None:
        return None
    return lookups.step_from(op, x, context.results[0], grids[1], lambda n: _negative(n, x))


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
    return interpolated(pieces(_inverse_root(op), (scale, zero_point), (to, to_zero)), x)


def _inverse_root(op: elementwise_unary.Rsqrt) -> Function:
    """Return the inverse root with the largest result for 0."""
    to, _ = per_tensor(op.output, "the result")
    return lambda v: np.where(v > 0, 1 / np.sqrt(np.abs(v)), np.float32(2**15 - 1) * to)


_pieces_in_c(elementwise_unary.Rsqrt, _inverse_root)


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
