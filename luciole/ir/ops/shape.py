"""SHAPE."""

import numpy as np

from luciole.ir.dtypes import NUMPY, Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import Ints, PartialInts
from luciole.ir.value import UNRANKED, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Shape(Op, code=BuiltinOperator.SHAPE, options="ShapeOptions"):
    """The operand's extents, as a vector of ``out_type``: INT32 or INT64."""

    input: Value = operand()

    out_type: TensorType = attr(default=TensorType.FLOAT32, dump="out_type")

    quant = Quant(since=FIRST)

    def infer_shape(self, /) -> tuple[int | None]:
        if self.input.shape is UNRANKED:
            return (None,)
        largest = max((n for n in self.input.shape if n is not None), default=0)
        if self.out_type in INDEX and largest > np.iinfo(NUMPY[self.out_type]).max:
            raise ShapeError(f"an extent of {largest} is too large for {self.out_type.name}")
        return (len(self.input.shape),)

    def infer_dtype(self, /) -> TensorType:
        if self.out_type not in INDEX:
            raise ShapeError(f"out_type is {self.out_type.name}, INT32 or INT64 is needed")
        return self.out_type

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        shape = self.input.shape
        return None if shape is UNRANKED else tuple(shape)

    def fold(self, /) -> Array | None:
        if None in self.input.shape or self.out_type not in INDEX:
            return None
        return np.array(self.input.shape, NUMPY[self.out_type])
