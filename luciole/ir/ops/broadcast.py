"""BROADCAST_TO and BROADCAST_ARGS: what element-wise operators do to shapes, by hand."""

from collections.abc import Iterator, Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.fill import not_negative, wanted_shape
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import Ints, PartialInts, broadcast, rank, settled
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class BroadcastTo(Op, code=BuiltinOperator.BROADCAST_TO, options="BroadcastToOptions"):
    """The operand stretched to ``shape``: axes of extent 1 repeat, and new ones come first."""

    oldest_version = 2

    input: Value = operand()
    shape: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        return stretched(self.input.shape, wanted_shape(self, self.shape, "shape"))


class BroadcastArgs(Op, code=BuiltinOperator.BROADCAST_ARGS):
    """The shape that tensors of two shapes stretch to; all three are vectors of integers."""

    s0: Value = operand()
    s1: Value = operand()

    infer_dtype = dtype_of("s0")

    def verify(self, /) -> Iterator[str]:
        if self.s0.dtype != self.s1.dtype:
            yield (
                f"s0 is {self.s0.dtype.name} and s1 is {self.s1.dtype.name}; "
                "both must have one type"
            )

    def infer_shape(self, /) -> Shape:
        (a,), (b,) = rank(self.s0, "s0", 1), rank(self.s1, "s1", 1)
        return (None if a is None or b is None else max(a, b),)

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        a, b = known(self.s0), known(self.s1)
        return None if a is None or b is None else broadcast(a, b)


def stretched(shape: Shape, target: Shape) -> Shape:
    """Return the target shape. Raises ShapeError when the other one does not stretch to it."""
    new = len(target) - len(shape)
    pairs = list(zip(shape, target[max(new, 0) :], strict=new >= 0))
    if new < 0 or any(None not in (n, m) and n not in (1, m) for n, m in pairs):
        raise ShapeError(f"{shape_text(shape)} does not stretch to {shape_text(target)}")
    return target


def common(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Compute the shape that two shapes stretch to. Raises ShapeError for extents below 0."""
    return settled(broadcast(not_negative(a, "s0"), not_negative(b, "s1")))
