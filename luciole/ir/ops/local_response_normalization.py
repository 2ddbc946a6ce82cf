"""LOCAL_RESPONSE_NORMALIZATION."""

from collections.abc import Iterator

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class LocalResponseNormalization(
    Op,
    code=BuiltinOperator.LOCAL_RESPONSE_NORMALIZATION,
    options="LocalResponseNormalizationOptions",
):
    """x (bias + alpha sum x^2)^-beta, the sum over neighbouring channels of an NHWC image.

    Neighbours are the channel itself, ``radius`` before and ``radius`` after it. Krizhevsky,
    Sutskever, Hinton, "ImageNet Classification with Deep Convolutional Neural Networks", 2012,
    section 3.3.
    """

    input: Value = operand()

    radius: int = attr(default=0, dump="radius")
    bias: float = attr(default=0.0, dump="bias")
    alpha: float = attr(default=0.0, dump="alpha")
    beta: float = attr(default=0.0, dump="beta")

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        return rank(self.input, "input", 4)

    def verify(self, /) -> Iterator[str]:
        if self.radius < 0:
            yield f"radius is {self.radius}, it must be at least 0"
