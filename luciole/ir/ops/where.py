"""WHERE."""

from luciole.ir.fields import operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Where(Op, code=BuiltinOperator.WHERE, options="WhereOptions"):
    """The places of all elements that are not 0, in order: a row of indices for each, INT64."""

    condition: Value = operand()

    def infer_dtype(self, /) -> TensorType:
        return TensorType.INT64

    def infer_shape(self, /) -> Shape:
        return (None, len(self.condition.shape))
