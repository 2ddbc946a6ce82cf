"""PACK."""

from collections.abc import Iterator, Sequence

from luciole.ir import rules
from luciole.ir.fields import attr, operands
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Pack(Op, code=BuiltinOperator.PACK, options="PackOptions"):
    """Tensors of one shape side by side along a new axis."""

    inputs: tuple[Value, ...] = operands()

    values_count: int = attr(default=0, dump="ValuesCount")
    axis: int = attr(default=0, dump="Axis")

    quant = Quant(result=Like("inputs"))

    def verify(self, /) -> Iterator[str]:
        if self.values_count != len(self.inputs):
            yield f"values_count is {self.values_count}, there are {len(self.inputs)} inputs"

    def infer_shape(self, /) -> Shape:
        return packed([value.shape for value in self.inputs], self.axis)

    def infer_ints(self, known: rules.PartialInts, /) -> rules.Ints | None:
        if any(value.shape for value in self.inputs):
            return None
        return tuple((known(value) or (None,))[0] for value in self.inputs)


def packed(shapes: Sequence[Shape], place: int) -> Shape:
    """Compute the shape of tensors put side by side. Raises ShapeError when theirs differ."""
    one = tuple(rules.same_extent(i, e) for i, e in enumerate(rules.by_axis(shapes)))
    at = rules.axis(place, len(one) + 1)
    return (*one[:at], len(shapes), *one[at:])
