"""Kernels of the binary element-wise operators on quantized tensors: integers of 8 or 16 bits.

Those of 16 bits without scales and zero points are plain numbers, where TFLite has both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, TensorType, Value
from luciole.ir.ops import comparisons
from luciole.ir.ops import elementwise_binary as ops
from luciole.ir.ops.prelu import PRelu
from luciole.ir.quantization import is_affine, per_tensor
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import pair_lookups
from luciole.kernels.elementwise_binary import refuse_zeros
from luciole.kernels.fixed_point.arithmetic import (
    Integers,
    activation_range,
    high_multiply,
    multiply,
    quantize_multiplier,
    requantized,
    rounding_divide,
)
from luciole.kernels.fixed_point.functions import leading_zeros, reciprocal
from luciole.schema.enums import ActivationFunctionType

SMALL = (TensorType.INT8, TensorType.UINT8)
ALL = (*SMALL, TensorType.INT16)

LEFT = 20
"""By how many bits sums of bytes are finer than the coarser operand, see ``finer``."""

Factor = tuple[Integers, Integers]
"""Multiplier and shift."""


@dataclass(frozen=True)
class Grid:
    """The grid of a result of 8 or 16 bits: its scale and zero point, its least and its largest
    number.
    """

    scale: np.float32
    zero: int
    limits: tuple[int, int]
    dtype: TensorType

    @classmethod
    def of(cls, op: ops.Binary | PRelu) -> Grid:
        """Return the grid of an operator's result, cut off by the fused activation where it has
        one.
        """
        scale, zero_point = per_tensor(op.output, "the result")
        dtype = op.infer_dtype()
        fused = op.activation if isinstance(op, ops.Arithmetic) else ActivationFunctionType.NONE
        return cls(scale, zero_point, activation_range(fused, dtype, scale, zero_point), dtype)

    def stored(self, steps: Integers) -> Array:
        """Add the zero point to numbers of steps from zero, cut off at the limits."""
        return requantized(steps, self.zero, self.limits, self.dtype)


@dataclass(frozen=True)
class Sum:
    """x + y or x - y: both operands on one grid that is ``left`` bits finer than the coarser one
    and twice as wide, then on that of the result.
    """

    left: int
    zeros: tuple[int, int]
    factors: tuple[Factor, Factor, Factor]
    grid: Grid

    @classmethod
    def of(cls, op: ops.Binary, left: int, power: int = 1) -> Sum:
        """Return the common grid of an operator whose result is a power of the sum."""
        (x, x_zero), (y, y_zero) = operands(op)
        grid, widest = Grid.of(op), 2 * float(max(x, y))
        back = widest**power / (2.0 ** (left * power) * float(grid.scale))
        real = (float(x) / widest, float(y) / widest, back)
        first, second, third = (quantize_multiplier(factor) for factor in real)
        return cls(left, (x_zero, y_zero), (first, second, third), grid)

    def scaled(self, x: Array, slot: int) -> Integers:
        """Bring an operand to the common grid."""
        steps = (x.astype(np.int64) - self.zeros[slot]) << self.left
        return multiply(steps, *self.factors[slot])

    def back(self, number: Array) -> Array:
        """Bring a number of the common grid, or a power of it, to the result's grid."""
        return self.grid.stored(multiply(number, *self.factors[2]))


def operands(op: ops.Binary) -> tuple[tuple[np.float32, int], tuple[np.float32, int]]:
    """Return scales and zero points of x and y."""
    return per_tensor(op.x, "x"), per_tensor(op.y, "y")


@reference(ops.Add, *ALL)
def add(op: ops.Add, x: Array, y: Array) -> Array:
    """Add x and y on a common grid; 16 bits without scales are added as they are."""
    if x.dtype == np.int16 and not is_affine(op.x):
        return activate(np.add(x, y), op.activation)
    shifts = power_of_two_shifts(op)
    if shifts is not None:
        total = rounding_divide(x, -shifts[0]) + rounding_divide(y, -shifts[1])
        return np.asarray(np.clip(total, *Grid.of(op).limits), x.dtype)
    found = Sum.of(op, finer(x))
    return found.back(found.scaled(x, 0) + found.scaled(y, 1))


@reference(ops.Sub, *ALL)
def sub(op: ops.Sub, x: Array, y: Array) -> Array:
    """Subtract y from x on a common grid."""
    shifts = power_of_two_shifts(op)
    if shifts is not None:
        total = rounding_divide(x, -shifts[0]) - rounding_divide(y, -shifts[1])
        return np.asarray(np.clip(total, *Grid.of(op).limits), x.dtype)
    found = Sum.of(op, finer(x))
    return found.back(found.scaled(x, 0) - found.scaled(y, 1))


def finer(x: Array) -> int:
    """Return by how many bits sums are finer than the coarser operand: as many as int32 has room
    for.
    """
    return 15 if x.dtype == np.int16 else LEFT


def power_of_two_shifts(op: ops.Add | ops.Sub) -> tuple[int, int] | None:
    """Return how far x and y are shifted to the result's grid, where all three scales are powers of
    two, the operator asks for it and one operand has the result's scale; None elsewhere.
    """
    if op.x.dtype != TensorType.INT16 or not op.pot_scale_int16:
        return None
    exponents = []
    for name, value in (("x", op.x), ("y", op.y), ("the result", op.output)):
        scale, zero_point = per_tensor(value, name)
        if zero_point:
            return None
        exponent = np.log2(np.float32(scale))
        if abs(exponent - np.rint(exponent)) >= 1e-3:
            return None
        exponents.append(int(np.rint(exponent)))
    shifts = (exponents[0] - exponents[2], exponents[1] - exponents[2])
    return shifts if max(shifts) == 0 else None


@reference(ops.Mul, *ALL)
def mul(op: ops.Mul, x: Array, y: Array) -> Array:
    """Multiply x by y; products of 16 bits without scales wrap.

    Bytes as results of 16 bits are the upper ones of fractions' products.
    """
    if op.infer_dtype() != op.x.dtype:
        fractions = np.minimum((x.astype(np.int64) * y + (1 << 14)) >> 15, 2**15 - 1)
        return Grid.of(op).stored(rounding_divide(fractions, 8))
    if x.dtype == np.int16 and not is_affine(op.output):
        return activate(np.multiply(x, y), op.activation)
    (x_scale, x_zero), (y_scale, y_zero) = operands(op)
    grid = Grid.of(op)
    factor = quantize_multiplier(x_scale * y_scale / grid.scale)
    return grid.stored(multiply(_steps(x, x_zero) * _steps(y, y_zero), *factor))


@reference(ops.Div, *ALL)
def div(op: ops.Div, x: Array, y: Array) -> Array:
    """Multiply x by the reciprocal of y. Raises LucioleError where y stands for 0.

    (Where the quotient is far below a step of the result, LiteRT shifts by more than 31 bits and
    gives something else.)
    """
    (x_scale, x_zero), (y_scale, y_zero) = operands(op)
    refuse_zeros(_steps(y, y_zero))
    grid = Grid.of(op)
    factor, shift = quantize_multiplier(x_scale / (y_scale * grid.scale))
    above, below = np.broadcast_arrays(_steps(x, x_zero), _steps(y, y_zero))
    inverse, bits = reciprocal(np.abs(below), 31)
    above = np.where(below < 0, -above, above)
    headroom = leading_zeros(np.where(above < 0, -above - 1, above)) - 1
    quotient = high_multiply(above << headroom, inverse)
    down = np.clip(headroom + bits - shift, 0, 62)
    return grid.stored(rounding_divide(high_multiply(quotient, factor), down))


def _steps(x: Array, zero_point: int) -> Array:
    """Return how many steps from zero stored integers are."""
    return np.asarray(x.astype(np.int64) - zero_point)


@reference(ops.SquaredDifference, TensorType.INT8)
def squared_difference(op: ops.SquaredDifference, x: Array, y: Array) -> Array:
    """Square the difference on a common grid."""
    found = Sum.of(op, 7, 2)
    return found.back(np.square(found.scaled(x, 0) - found.scaled(y, 1)))


pair_lookups.register(ops.SquaredDifference, TensorType.INT8)


@reference(PRelu, *SMALL, (TensorType.INT16, TensorType.INT8))
def prelu(op: PRelu, x: Array, alpha: Array) -> Array:
    """Scale x where it is not negative, else alpha x; each has a factor of its own.

    Beside 16 bits, alpha has 8.
    """
    scale, zero_point = per_tensor(op.input, "the input")
    slope, alpha_zero = per_tensor(op.alpha, "alpha")
    grid, steps = Grid.of(op), _steps(x, zero_point)
    kept = multiply(steps, *quantize_multiplier(scale / grid.scale))
    bent = steps * _steps(alpha, alpha_zero)
    factor = quantize_multiplier(scale * slope / grid.scale)
    return grid.stored(np.where(steps >= 0, kept, multiply(bent, *factor)))


pair_lookups.register(PRelu, *SMALL)


def _compares(cls: type[comparisons.Comparison], function: Callable[[Array, Array], Array]) -> None:
    """Compare 8 bit integers by the real numbers they stand for, rounded to 1/256 of 1."""

    @reference(cls, *ALL)
    def kernel(op: comparisons.Comparison, x: Array, y: Array) -> Array:
        if x.dtype == np.int16 and not (is_affine(op.x) and cls in BY_SCALE):
            return np.asarray(function(x, y))
        return np.asarray(function(_rounded(op.x, "x", x), _rounded(op.y, "y", y)))

    pair_lookups.register(cls, *SMALL)


def _rounded(value: Value, name: str, x: Array) -> Integers:
    scale, zero_point = per_tensor(value, name)
    return multiply(_steps(x, zero_point) << 8, *quantize_multiplier(scale))


BY_SCALE = (comparisons.Equal, comparisons.NotEqual)
"""What compares quantized numbers of 16 bits by their scales; the others compare integers."""

_compares(comparisons.Less, np.less)
_compares(comparisons.LessEqual, np.less_equal)
_compares(comparisons.Greater, np.greater)
_compares(comparisons.GreaterEqual, np.greater_equal)
_compares(comparisons.Equal, np.equal)
_compares(comparisons.NotEqual, np.not_equal)
