"""CAST."""

from luciole.ir.fields import INDEX, attr, like, operand
from luciole.ir.op import Op
from luciole.ir.rules import Ints, PartialInts
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Cast(Op, code=BuiltinOperator.CAST, options="CastOptions"):
    """The same numbers in another element type.

    The result's own type counts: converters leave the attributes out or at their default.
    """

    x: Value = operand()

    in_data_type: TensorType = attr(default=TensorType.FLOAT32, dump="in_data_type")
    out_data_type: TensorType = attr(default=TensorType.FLOAT32, dump="out_data_type")

    infer_shape = like("x")

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        return known(self.x) if self.infer_dtype() in INDEX else None

    def infer_dtype(self, /) -> TensorType:
        return self.output.dtype if self.results else self.out_data_type
