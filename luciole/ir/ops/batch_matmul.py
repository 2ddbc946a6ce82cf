"""BATCH_MATMUL."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant
from luciole.ir.rules import agree, broadcast
from luciole.ir.value import Shape, Value, element_count, shape_text
from luciole.schema.enums import BuiltinOperator


def _matrix(value: Value, name: str, adjoint: bool) -> tuple[Shape, int | None, int | None]:
    """Return batch axes, rows and columns of an operand."""
    if len(value.shape) < 2:
        raise ShapeError(f"{name} has shape {shape_text(value.shape)}, rank 2 or more is needed")
    *batch, rows, columns = value.shape
    return (tuple(batch), columns, rows) if adjoint else (tuple(batch), rows, columns)


class BatchMatMul(Op, code=BuiltinOperator.BATCH_MATMUL, options="BatchMatMulOptions"):
    """Matrix products x y over the last two axes; the axes before them are stretched to each other.

    ``adjoint_lhs`` and ``adjoint_rhs`` transpose the matrices of x and y first.
    """

    x: Value = operand()
    y: Value = operand()

    adjoint_lhs: bool = attr(default=False, dump="adjoint_lhs")
    adjoint_rhs: bool = attr(default=False, dump="adjoint_rhs")
    asymmetric_quantize_inputs: bool = attr(default=False)

    quant = Quant()
    infer_dtype = dtype_of("x")

    def infer_shape(self, /) -> Shape:
        x_batch, rows, x_depth = _matrix(self.x, "x", self.adjoint_lhs)
        y_batch, y_depth, columns = _matrix(self.y, "y", self.adjoint_rhs)
        agree("summed extent", x_depth, y_depth, "x", "y")
        return (*broadcast(x_batch, y_batch), rows, columns)

    def macs(self, /) -> int:
        """Count a row of x times a column of y for each element of the result."""
        depth = self.x.dims[-2 if self.adjoint_lhs else -1] if len(self.x.dims) > 1 else 0
        return element_count(self.output.dims) * depth
