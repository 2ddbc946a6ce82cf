"""MATRIX_DIAG and MATRIX_SET_DIAG: the diagonals of matrices in a batch."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class MatrixDiag(Op, code=BuiltinOperator.MATRIX_DIAG, options="MatrixDiagOptions"):
    """Square matrices of zeros with the last axis as diagonals: [.., n] to [.., n, n]."""

    diagonal: Value = operand()

    infer_dtype = dtype_of("diagonal")

    def infer_shape(self, /) -> Shape:
        if not self.diagonal.shape:
            raise ShapeError("diagonal is a scalar, an axis is needed")
        return (*self.diagonal.shape, self.diagonal.shape[-1])


class MatrixSetDiag(Op, code=BuiltinOperator.MATRIX_SET_DIAG, options="MatrixSetDiagOptions"):
    """The matrices [.., m, n] with their diagonals [.., min(m, n)] replaced."""

    input: Value = operand()
    diagonal: Value = operand()

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape, diagonal = self.input.shape, self.diagonal.shape
        if len(shape) < 2 or len(diagonal) != len(shape) - 1:
            raise ShapeError(
                f"input is {shape_text(shape)} and diagonal {shape_text(diagonal)}, "
                "matrices and an axis less are needed"
            )
        for axis, (n, m) in enumerate(zip(shape[:-2], diagonal, strict=False)):
            agree(f"axis {axis}", n, m, "input", "diagonal")
        shorter = None if None in shape[-2:] else min(n for n in shape[-2:] if n is not None)
        agree("elements of a diagonal", shorter, diagonal[-1], "input", "diagonal")
        return shape
