"""SQUEEZE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Like, Quant
from luciole.ir.rules import Ints, PartialInts, axes, rank_of_file
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class Squeeze(Op, code=BuiltinOperator.SQUEEZE, options="SqueezeOptions"):
    """Without the given axes, whose extent is 1; without all of extent 1 when none are given."""

    input: Value = operand()

    squeeze_dims: tuple[int, ...] = attr(default=(), dump="SqueezeDims")

    quant = Quant(result=Like("input"), since=FIRST)
    reshapes = True
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        if not self.squeeze_dims and None in self.input.shape:
            text = shape_text(self.input.shape)
            return rank_of_file(
                self, f"the rank of the result is unknown: input is {text}, squeeze_dims empty"
            )
        return squeezed(self.input.shape, self.squeeze_dims)

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        return known(self.input) if len(self.output.shape) < 2 else None


def squeezed(shape: Shape, dims: Sequence[int]) -> Shape:
    """Compute the shape without some axes, all of extent 1 when none is given. Raises
    ShapeError.
    """
    gone = axes(dims, len(shape), "squeeze_dims")
    for i in gone:
        if shape[i] not in (1, None):
            raise ShapeError(
                f"squeeze_dims: axis {i} has {shape[i]} elements, only 1 can be left out"
            )
    if not gone:
        return tuple(n for n in shape if n != 1)
    return tuple(n for i, n in enumerate(shape) if i not in gone)
