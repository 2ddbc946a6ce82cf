"""FILL."""

from collections.abc import Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Fill(Op, code=BuiltinOperator.FILL, options="FillOptions"):
    """A tensor of shape ``dims`` in which every element is ``value``, a single one."""

    dims: Value = operand(dtype=INDEX)
    value: Value = operand()

    infer_dtype = dtype_of("value")

    def infer_shape(self, /) -> Shape:
        rules.agree("elements", rules.product(self.value.shape), 1, "value", "a filling")
        return wanted_shape(self, self.dims, "dims")


def wanted_shape(op: Op, operand: Value, name: str) -> Shape:
    """Read the shape that an operand holds; its rank at least where the extents are computed.

    Raises ShapeError for extents below 0, and when the rank is in no file either.
    """
    extents = rules.known_ints(operand, name)
    if extents is not None:
        return not_negative(extents, name)
    partly = rules.PartialInts()(operand)
    if partly is not None:
        not_negative([n for n in partly if n is not None], name)
        return partly
    length = rules.product(operand.shape)
    if length is None:
        reason = f"the rank of the result is unknown: so is the length of {name}"
        return rules.rank_of_file(op, reason)
    return rules.unknown(length)


def not_negative(extents: Sequence[int], name: str) -> tuple[int, ...]:
    """Return the extents. Raises ShapeError when one is below 0."""
    if any(n < 0 for n in extents):
        raise ShapeError(f"{name} is {list(extents)}, nothing below 0 is possible")
    return tuple(extents)
