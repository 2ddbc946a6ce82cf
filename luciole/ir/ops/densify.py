"""DENSIFY."""

from luciole.ir.dtypes import Array
from luciole.ir.fields import dtype_of, like, operand
from luciole.ir.op import Op
from luciole.ir.sparsity import dense
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator


class Densify(Op, code=BuiltinOperator.DENSIFY, options="DensifyOptions"):
    """All elements of the constant operand, of which the file holds only those that are not 0."""

    input: Value = operand()

    reshapes = True
    infer_dtype = dtype_of("input")
    infer_shape = like("input")

    def fold(self, /) -> Array | None:
        sparse = self.input.sparsity is not None and self.input.is_constant
        return dense(self.input) if sparse else None
