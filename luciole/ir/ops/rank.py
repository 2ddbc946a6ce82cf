"""RANK."""

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.fields import operand
from luciole.ir.op import Op
from luciole.ir.value import UNRANKED, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Rank(Op, code=BuiltinOperator.RANK, options="RankOptions"):
    """How many axes the operand has: a scalar, INT32."""

    input: Value = operand()

    def infer_dtype(self, /) -> TensorType:
        return TensorType.INT32

    def infer_shape(self, /) -> tuple[()]:
        return ()

    def fold(self, /) -> Array | None:
        if self.input.shape is UNRANKED:
            return None
        return np.array(len(self.input.shape), np.int32)
