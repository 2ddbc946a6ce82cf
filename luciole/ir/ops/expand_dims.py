"""EXPAND_DIMS."""

from collections.abc import Sequence

from luciole.ir import rules
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class ExpandDims(Op, code=BuiltinOperator.EXPAND_DIMS, options="ExpandDimsOptions"):
    """With a new axis of extent 1 before the given one; -1 puts it last."""

    input: Value = operand()
    axis: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"), since=FIRST)
    reshapes = True
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        place = rules.known_ints(self.axis, "axis", 1)
        if place is None:
            return rules.unknown(len(self.input.shape) + 1)
        return expanded(self.input.shape, place)

    def infer_ints(self, known: rules.PartialInts, /) -> rules.Ints | None:
        return known(self.input) if len(self.output.shape) < 2 else None


def expanded(shape: Shape, place: Sequence[int]) -> Shape:
    """Compute the shape with an axis more. Raises ShapeError when it would lie outside."""
    at = rules.axis(place[0], len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])
