"""RFFT2D."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, product
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator, TensorType


class Rfft2d(Op, code=BuiltinOperator.RFFT2D, options="Rfft2dOptions"):
    """Discrete Fourier transform over the last two axes, of which ``fft_length`` elements count.

    Longer axes are cut off, shorter ones have zeros behind them. Of the last axis' n frequencies
    the n / 2 + 1 first are kept: the others are their conjugates.
    """

    input: Value = operand()
    fft_length: Value = operand(dtype=INDEX)

    def infer_dtype(self, /) -> TensorType:
        return TensorType.COMPLEX64

    def infer_shape(self, /) -> Shape:
        agree("entries", product(self.fft_length.shape), 2, "fft_length", "a transform")
        return transformed(self.input.shape, known_ints(self.fft_length, "fft_length", 2))


def transformed(shape: Shape, lengths: Sequence[int] | None) -> Shape:
    """Compute the result's shape; lengths are None where they are not known. Raises ShapeError."""
    if len(shape) < 2:
        raise ShapeError(f"input is {shape_text(shape)}, at least two axes are needed")
    if lengths is None:
        return (*shape[:-2], None, None)
    rows, columns = lengths
    if min(lengths) < 1:
        raise ShapeError(f"fft_length is {list(lengths)}, both must be at least 1")
    return (*shape[:-2], rows, columns // 2 + 1)
