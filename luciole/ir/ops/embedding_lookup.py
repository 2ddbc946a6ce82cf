"""EMBEDDING_LOOKUP."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant, Versions
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType

TABLES = (TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2)
"""Element types of rows that become real numbers as they are looked up."""


class EmbeddingLookup(Op, code=BuiltinOperator.EMBEDDING_LOOKUP):
    """Rows picked along the first axis: result[i, ..] = value[lookup[i], ..].

    Quantized rows become real numbers where the file says that the result is FLOAT32.
    """

    lookup: Value = operand(dtype=(TensorType.INT32,))
    value: Value = operand()

    quant = Quant(result=Like("value"), table="value", input="lookup", since=Versions(1, 1, 4, 4))

    def infer_dtype(self, /) -> TensorType:
        declared = self.results[0].dtype if self.results else self.value.dtype
        return TensorType.FLOAT32 if declared == TensorType.FLOAT32 else self.value.dtype

    def infer_shape(self, /) -> Shape:
        (count,) = rank(self.lookup, "lookup", 1)
        if not self.value.shape:
            raise ShapeError("value is a scalar, rows are needed")
        return (count, *self.value.shape[1:])
