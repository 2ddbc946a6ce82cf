"""CUMSUM."""

from luciole.ir import rules
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Cumsum(Op, code=BuiltinOperator.CUMSUM, options="CumsumOptions"):
    """Sums of the elements along an axis up to each one: with it, or without if ``exclusive``.

    With ``reverse``, of those from each one to the end.
    """

    input: Value = operand()
    axis: Value = operand(dtype=INDEX)

    exclusive: bool = attr(default=False)
    reverse: bool = attr(default=False)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        place = rules.known_ints(self.axis, "axis", 1)
        if place is not None:
            rules.axis(place[0], len(self.input.shape))
        return self.input.shape
