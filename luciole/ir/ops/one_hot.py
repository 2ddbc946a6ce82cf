"""ONE_HOT."""

from collections.abc import Iterator, Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class OneHot(Op, code=BuiltinOperator.ONE_HOT, options="OneHotOptions"):
    """Indices as vectors of ``depth`` elements along a new axis, -1 for the last.

    Element i of a vector is ``on_value``, all others are ``off_value``; an index that is below 0 or
    not below depth has no such element.
    """

    indices: Value = operand(dtype=INDEX)
    depth: Value = operand(dtype=INDEX)
    on_value: Value = operand()
    off_value: Value = operand()

    axis: int = attr(default=0, dump="Axis")

    infer_dtype = dtype_of("on_value")

    def verify(self, /) -> Iterator[str]:
        if self.on_value.dtype != self.off_value.dtype:
            yield (
                f"on_value is {self.on_value.dtype.name} and off_value is "
                f"{self.off_value.dtype.name}; both must have one type"
            )

    def infer_shape(self, /) -> Shape:
        for name, value in (("on_value", self.on_value), ("off_value", self.off_value)):
            rules.agree("elements", rules.product(value.shape), 1, name, "a vector's element")
        depth = rules.known_ints(self.depth, "depth", 1)
        return spread(self.indices.shape, depth or (None,), self.axis)


def spread(shape: Shape, depth: Sequence[int | None], place: int) -> Shape:
    """Compute the result's shape. Raises ShapeError for a negative depth or an axis that cannot
    be.
    """
    (count,) = depth
    if count is not None and count < 0:
        raise ShapeError(f"depth is {count}, it must be at least 0")
    at = rules.axis(place, len(shape) + 1)
    return (*shape[:at], count, *shape[at:])
