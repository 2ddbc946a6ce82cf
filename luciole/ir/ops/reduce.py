"""Reductions: many elements become one, along some axes."""

from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Like, Quant
from luciole.ir.rules import axes, known_ints, rank_of_file, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator

COMPUTED = "the reduction axes are computed: the result's rank is known only from a file"


class Reduction(Op):
    """Base of the family. Axes may be negative and repeat; a scalar is one axis."""

    input: Value = operand()
    reduction_indices: Value = operand(dtype=INDEX)

    keep_dims: bool = attr(default=False, dump="keep_dims")

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape = self.input.shape
        numbers = known_ints(self.reduction_indices, "reduction_indices")
        if numbers is None:
            return unknown(len(shape)) if self.keep_dims else rank_of_file(self, COMPUTED)
        gone = axes(numbers, len(shape), "a reduction axis")
        if self.keep_dims:
            return tuple(1 if i in gone else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in gone)


class Mean(Reduction, code=BuiltinOperator.MEAN, options="ReducerOptions"):
    """Arithmetic mean; that of integers is rounded toward zero."""

    quant = Quant()


class Sum(Reduction, code=BuiltinOperator.SUM, options="ReducerOptions"):
    """Sum."""

    quant = Quant(since=SECOND)


class ReduceMax(Reduction, code=BuiltinOperator.REDUCE_MAX, options="ReducerOptions"):
    """Largest element."""

    quant = Quant(result=Like("input"))


class ReduceMin(Reduction, code=BuiltinOperator.REDUCE_MIN, options="ReducerOptions"):
    """Smallest element."""

    quant = Quant(result=Like("input"))


class ReduceProd(Reduction, code=BuiltinOperator.REDUCE_PROD, options="ReducerOptions"):
    """Product."""


class ReduceAny(Reduction, code=BuiltinOperator.REDUCE_ANY, options="ReducerOptions"):
    """Whether one of them is true."""


class ReduceAll(Reduction, code=BuiltinOperator.REDUCE_ALL, options="ReducerOptions"):
    """Whether all of them are true."""
