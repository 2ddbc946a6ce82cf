"""Real numbers out of complex ones, element by element."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import like, operand
from luciole.ir.op import Op
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator, TensorType

PARTS = {
    TensorType.COMPLEX64: TensorType.FLOAT32,
    TensorType.COMPLEX128: TensorType.FLOAT64,
}
"""The type of a complex number's two parts."""


class ComplexPart(Op):
    """Base of the family."""

    x: Value = operand()

    infer_shape = like("x")

    def infer_dtype(self, /) -> TensorType:
        if self.x.dtype not in PARTS:
            raise ShapeError(f"x is {self.x.dtype.name}, COMPLEX64 or COMPLEX128 is needed")
        return PARTS[self.x.dtype]


class Real(ComplexPart, code=BuiltinOperator.REAL):
    """Real part."""


class Imag(ComplexPart, code=BuiltinOperator.IMAG):
    """Imaginary part."""


class ComplexAbs(ComplexPart, code=BuiltinOperator.COMPLEX_ABS):
    """Absolute value."""
