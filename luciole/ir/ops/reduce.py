"""Reductions: many elements become one, along some axes."""

from luciole.ir.errors import ShapeError
from luciole.ir.op import INDEX, Op, attr, dtype_of, operand
from luciole.ir.rules import axes, known_ints, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Reduction(Op):
    """Base of the family. Axes may be negative and repeat; a scalar is one axis, no axis changes nothing."""

    input: Value = operand()
    reduction_indices: Value = operand(dtype=INDEX)

    keep_dims: bool = attr(default=False)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape = self.input.shape
        numbers = known_ints(self.reduction_indices, "reduction_indices")
        if numbers is None:
            return self._unknown_axes(len(shape))
        gone = axes(numbers, len(shape), "a reduction axis")
        if self.keep_dims:
            return tuple(1 if i in gone else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in gone)

    def _unknown_axes(self, rank: int) -> Shape:
        """What can be said before the axes are computed; without ``keep_dims``, what the file says."""
        if self.keep_dims:
            return unknown(rank)
        if self.results:
            return self.output.shape
        raise ShapeError("the axes are computed, so the rank is unknown: a result shape must be given")


class Mean(Reduction, code=BuiltinOperator.MEAN, options="ReducerOptions"):
    """Arithmetic mean; that of integers is rounded toward zero."""


class Sum(Reduction, code=BuiltinOperator.SUM, options="ReducerOptions"):
    """Sum."""


class ReduceMax(Reduction, code=BuiltinOperator.REDUCE_MAX, options="ReducerOptions"):
    """Largest element."""
