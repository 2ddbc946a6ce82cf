"""HASHTABLE_LOOKUP."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class HashtableLookup(Op, code=BuiltinOperator.HASHTABLE_LOOKUP):
    """Rows picked by sorted keys, and whether there was a key.

    output[i, ..] = value[k, ..] and hits[i] = 1 where key[k] = lookup[i], else zeros.
    """

    lookup: Value = operand(dtype=(TensorType.INT32,))
    key: Value = operand(dtype=(TensorType.INT32,))
    value: Value = operand()

    result_names = ("output", "hits")

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return (self.value.dtype, TensorType.UINT8)

    def infer_shape(self, /) -> tuple[Shape, ...]:
        (count,), (keys,) = rank(self.lookup, "lookup", 1), rank(self.key, "key", 1)
        if not self.value.shape:
            raise ShapeError("value is a scalar, rows are needed")
        agree("rows", keys, self.value.shape[0], "key", "value")
        return ((count, *self.value.shape[1:]), (count,))
