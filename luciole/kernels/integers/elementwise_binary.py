"""Kernels of the binary element-wise operators on quantized tensors: integers of 8 or 16 bits.

Those of 16 bits without scales and zero points are plain numbers, where TFLite has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from luciole.ir import Array, Op, TensorType, UnsupportedError
from luciole.ir.analysis.fixed_point import (
    Integers,
    activation_range,
    high_multiply,
    multiply,
    quantize_multiplier,
    requantized,
    rounding_divide,
)
from luciole.ir.ops import comparisons
from luciole.ir.ops import elementwise_binary as ops
from luciole.ir.ops.prelu import PRelu
from luciole.ir.quantization import is_affine, per_tensor
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context, Signature
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.elements.integer_pairs import Function, Pairs, step
from luciole.kernels.elementwise_binary import refuse_zeros
from luciole.kernels.fixed_point.compiled import ONE, Factor
from luciole.kernels.fixed_point.functions import leading_zeros, reciprocal
from luciole.kernels.portable.calls import CCall, Field, PortableContext, number_of, portable
from luciole.kernels.portable.grids import test_name
from luciole.kernels.portable.integers import check_grid, factor_fields
from luciole.kernels.portable.moves import spread_both
from luciole.kernels.portable.plain import pair_calls
from luciole.schema.enums import ActivationFunctionType

SMALL = (TensorType.INT8, TensorType.UINT8)
INT16 = TensorType.INT16
ALL = (*SMALL, INT16)

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class

LEFT = 20
"""By how many bits sums of bytes are finer than the coarser operand, see ``finer``."""

UPPER_BYTE: Factor = (1 << 16, -8)
"""What brings a product of fractions of 15 bits to 15 bits, then to 7."""

FINER = 8
"""By how many bits compared numbers are finer than 1."""


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


def _plain(multiplier: Integers, shift: Integers) -> tuple[int, int]:
    """Return one factor as numbers that compare by value."""
    return int(multiplier), int(shift)


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
        first, second, third = (_plain(*quantize_multiplier(factor)) for factor in real)
        return cls(left, (x_zero, y_zero), (first, second, third), grid)

    def scaled(self, x: Array, slot: int) -> Integers:
        """Bring an operand to the common grid."""
        steps = (x.astype(np.int64) - self.zeros[slot]) << self.left
        return multiply(steps, *self.factors[slot])

    def turned(self) -> Sum:
        """Exchange the zero points and factors of x and y."""
        (x, y), (first, second, third) = self.zeros, self.factors
        return replace(self, zeros=(y, x), factors=(second, first, third))

    def pairs(self, function: Function) -> Pairs:
        """Return a function of the common grid as the compiled kernel takes it."""
        return Pairs(
            function, self.zeros, self.factors, self.left, self.grid.zero, self.grid.limits
        )

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
    grid = common(op)
    return grid.back(grid.scaled(x, 0) + grid.scaled(y, 1))


@reference(ops.Sub, *ALL)
def sub(op: ops.Sub, x: Array, y: Array) -> Array:
    """Subtract y from x on a common grid."""
    grid = common(op)
    return grid.back(grid.scaled(x, 0) - grid.scaled(y, 1))


def common(op: ops.Add | ops.Sub) -> Sum:
    """Return the grid on which x and y are added: that of the result where ``power_of_two_shifts``
    are there.
    """
    shifts = power_of_two_shifts(op)
    if shifts is None:
        return Sum.of(op, finer(op.x.dtype))
    first, second = ((ONE[0], shift) for shift in shifts)
    return Sum(0, (0, 0), (first, second, ONE), Grid.of(op))


def finer(dtype: TensorType) -> int:
    """Return by how many bits sums are finer than the coarser operand: as many as int32 has room
    for.
    """
    return 15 if dtype == TensorType.INT16 else LEFT


def _compiled(
    cls: type[O], read: Callable[[O], Pairs], *signatures: TensorType | Signature
) -> None:
    """Register a compiled kernel of an operator, with the parameters that ``read`` accepts."""

    @native(cls, *signatures)
    def build(op: O, context: Context) -> Built:
        (x, y), pairs = context.pair, accepted(read, op)
        return pairs if isinstance(pairs, Declined) else step(pairs, x, y, context.results[0])


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
    """Multiply x by y; products of 16 bits without scales wrap."""
    if x.dtype == np.int16 and not is_affine(op.output):
        return activate(np.multiply(x, y), op.activation)
    pairs = product(op)
    steps = (_steps(array, zero) for array, zero in zip((x, y), pairs.zeros, strict=True))
    return Grid.of(op).stored(multiply(math.prod(steps), *pairs.factors[2]))


def product(op: ops.Mul) -> Pairs:
    """Return the product of x and y: bytes as results of 16 bits are the upper ones of fractions'
    products.
    """
    grid, zeros = Grid.of(op), (0, 0)
    factor: Factor = UPPER_BYTE
    if op.infer_dtype() == op.x.dtype:
        (x_scale, x_zero), (y_scale, y_zero) = operands(op)
        zeros, factor = (x_zero, y_zero), quantize_multiplier(x_scale * y_scale / grid.scale)
    return Pairs(Function.PRODUCT, zeros, (ONE, ONE, factor), 0, grid.zero, grid.limits)


_compiled(ops.Mul, product, INT16)


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
    grid = between(op)
    return grid.back(np.square(grid.scaled(x, 0) - grid.scaled(y, 1)))


def between(op: ops.SquaredDifference) -> Sum:
    """Return the grid on which y is subtracted from x and the difference squared."""
    return Sum.of(op, 7, 2)


_compiled(
    ops.SquaredDifference,
    lambda op: between(op).pairs(Function.SQUARED_DIFFERENCE),
    TensorType.INT8,
)


@reference(PRelu, *SMALL, (TensorType.INT16, TensorType.INT8))
def prelu(op: PRelu, x: Array, alpha: Array) -> Array:
    """Scale x where it is not negative, else alpha x; each has a factor of its own.

    Beside 16 bits, alpha has 8.
    """
    pairs = bent(op)
    steps, slope = (_steps(a, z) for a, z in zip((x, alpha), pairs.zeros, strict=True))
    kept, below = multiply(steps, *pairs.factors[0]), multiply(steps * slope, *pairs.factors[1])
    return Grid.of(op).stored(np.where(steps >= 0, kept, below))


@reads(PRelu, *SMALL, (TensorType.INT16, TensorType.INT8))
def bent(op: PRelu) -> Pairs:
    """Return the factors of x and of alpha x."""
    scale, zero_point = per_tensor(op.input, "the input")
    slope, alpha_zero = per_tensor(op.alpha, "alpha")
    grid, zeros = Grid.of(op), (zero_point, alpha_zero)
    real = (scale / grid.scale, scale * slope / grid.scale)
    factors = (*map(quantize_multiplier, real), ONE)
    return Pairs(Function.BENT, zeros, factors, 0, grid.zero, grid.limits)


_compiled(PRelu, bent, *SMALL, (INT16, TensorType.INT8))


def _compares(
    cls: type[comparisons.Comparison],
    compare: Callable[[Array, Array], Array],
    function: Function,
    swapped: bool = False,
) -> None:
    """Compare quantized integers by the real numbers they stand for, rounded to 1/256 of 1.

    ``swapped`` says that the compiled function is that of y and x.
    """

    @reference(cls, *ALL)
    def kernel(op: comparisons.Comparison, x: Array, y: Array) -> Array:
        pairs = compared(op, function)
        p, q = (_fine(array, pairs, slot) for slot, array in enumerate((x, y)))
        return np.asarray(compare(p, q))

    @native(cls, *ALL)
    def build(op: comparisons.Comparison, context: Context) -> Built:
        (x, y), pairs = context.pair, accepted(compared, op, function)
        if isinstance(pairs, Declined):
            return pairs
        if swapped:
            pairs, x, y = pairs.turned(), y, x
        return step(pairs, x, y, context.results[0])


def compared(op: comparisons.Comparison, function: Function) -> Pairs:
    """Return how integers are compared: by their scales, or as they are."""
    dtype = op.x.dtype
    if dtype in op.quantized_as.unscaled or (dtype == INT16 and not is_affine(op.x)):
        return Pairs(function, (0, 0), (ONE, ONE, ONE))
    grids = per_tensor(op.x, "x"), per_tensor(op.y, "y")
    first, second = (quantize_multiplier(scale) for scale, _ in grids)
    return Pairs(function, (grids[0][1], grids[1][1]), (first, second, ONE), FINER)


def _fine(x: Array, pairs: Pairs, slot: int) -> Integers:
    """Bring an operand to the numbers that are compared."""
    return multiply(_steps(x, pairs.zeros[slot]) << pairs.left, *pairs.factors[slot])


_compares(comparisons.Less, np.less, Function.LESS)
_compares(comparisons.LessEqual, np.less_equal, Function.LESS_EQUAL)
_compares(comparisons.Greater, np.greater, Function.LESS, swapped=True)
_compares(comparisons.GreaterEqual, np.greater_equal, Function.LESS_EQUAL, swapped=True)
_compares(comparisons.Equal, np.equal, Function.EQUAL)
_compares(comparisons.NotEqual, np.not_equal, Function.NOT_EQUAL)


def _in_c(cls: type[O], function: str, read: Callable[[O], Pairs], *types: TensorType) -> None:
    """Register the C form of a function of two integers on a common grid."""

    @portable(cls, TensorType.INT8, *types)
    def calls(op: O, context: PortableContext) -> list[CCall]:
        del context
        return _scaled_calls(op, function, read(op))


def _scaled_calls(op: Op, function: str, pairs: Pairs) -> list[CCall]:
    result, dtype = op.results[0], op.required(0).dtype
    operands, before = spread_both(op.required(0), op.required(1), result)
    fields: dict[str, Field] = {"count": element_count(result.dims), "finer": pairs.left}
    if pairs.factors[0][0] == pairs.factors[1][0] == ONE[0]:
        halves = ((ONE[0] // 2, int(shift)) for _, shift in pairs.factors[:2])
        pairs = replace(pairs, factors=(*halves, pairs.factors[2]))
        fields["finer"] = pairs.left + 1
    for factor, name in zip(pairs.factors, ("x_", "y_", ""), strict=True):
        fields |= factor_fields(name, factor)
    check_grid((*pairs.zeros, pairs.zero), pairs.limits, dtype)
    most = max(number_of(fields, name) for name in ("x_shift", "y_shift"))
    if most + number_of(fields, "finer") > _ROOM[dtype]:
        raise UnsupportedError("its numbers on a common grid may leave 32 bits")
    fields |= {"x_zero": pairs.zeros[0], "y_zero": pairs.zeros[1], "result_zero": pairs.zero}
    fields |= dict(zip(("least", "most"), pairs.limits, strict=True))
    kind = dtype.name.lower()
    layout = f"luc_add_{kind}"
    return [*before, CCall(f"{function}_{kind}", fields, operands, (result,), layout=layout)]


_ROOM = {TensorType.INT8: 22, TensorType.UINT8: 22, INT16: 15}
"""Bits that steps from zero may be shifted up by in 32 bits."""


def _plain_in_c(op: ops.Arithmetic, function: str) -> list[CCall]:
    """Compute with 16 bits without scales as they are."""
    if op.activation != ActivationFunctionType.NONE:
        raise UnsupportedError(f"plain integers and {op.activation.name} have no C form")
    return pair_calls(function, op.x, op.y, op.output)


@portable(ops.Add, *ALL)
def add_in_c(op: ops.Add, context: PortableContext) -> list[CCall]:
    """Call the sum of integers."""
    del context
    if op.x.dtype == INT16 and not is_affine(op.x):
        return _plain_in_c(op, "plus")
    return _scaled_calls(op, "luc_add", common(op).pairs(Function.SUM))


_in_c(ops.Sub, "luc_sub", lambda op: common(op).pairs(Function.DIFFERENCE), *ALL[1:])
_in_c(
    ops.SquaredDifference,
    "luc_squared_difference_scaled",
    lambda op: between(op).pairs(Function.SQUARED_DIFFERENCE),
)
_in_c(PRelu, "luc_prelu", bent, TensorType.UINT8)
for _cls in comparisons.COMPARISONS:
    _test = test_name(_cls.code.name.lower())
    _in_c(_cls, _test, lambda op: compared(op, Function.LESS), *ALL[1:])


@portable(ops.Mul, *ALL)
def mul_in_c(op: ops.Mul, context: PortableContext) -> list[CCall]:
    """Call the product of integers."""
    del context
    dtype = op.x.dtype
    if dtype == INT16 and not is_affine(op.output):
        return _plain_in_c(op, "times")
    if op.infer_dtype() != dtype:
        raise UnsupportedError(f"products of {op.infer_dtype().name} have no C form")
    operands, before = spread_both(op.x, op.y, op.results[0])
    pairs, grid = product(op), Grid.of(op)
    check_grid((*pairs.zeros, grid.zero), grid.limits, dtype)
    fields: dict[str, Field] = {"count": element_count(op.results[0].dims)}
    fields |= {"x_zero": pairs.zeros[0], "y_zero": pairs.zeros[1], "result_zero": grid.zero}
    fields |= dict(zip(("least", "most"), grid.limits, strict=True))
    fields |= factor_fields("", pairs.factors[2])
    return [*before, CCall(f"luc_mul_{dtype.name.lower()}", fields, operands, op.results)]
