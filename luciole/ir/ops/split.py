"""SPLIT."""

from collections.abc import Iterator, Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Split(Op, code=BuiltinOperator.SPLIT, options="SplitOptions"):
    """``num_splits`` parts of equal extent along an axis."""

    split_dim: Value = operand(dtype=INDEX)
    input: Value = operand()

    num_splits: int = attr(default=0, dump="num_splits")

    quant = Quant(result=Like("input"))
    variadic_results = True
    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if self.num_splits < 1:
            yield f"num_splits is {self.num_splits}, it must be at least 1"

    def infer_shape(self, /) -> tuple[Shape, ...]:
        place = rules.known_ints(self.split_dim, "split_dim", 1)
        if place is None:
            part = rules.unknown(len(self.input.shape))
        else:
            part = part_of(self.input.shape, place, self.num_splits)
        return rules.parts(part, self.num_splits, "num_splits")


def part_of(shape: Shape, place: Sequence[int], count: int) -> Shape:
    """Compute the shape of each part. Raises ShapeError when the axis does not divide."""
    along = rules.axis(place[0], len(shape), "split_dim")
    n = shape[along]
    if count < 1 or (n is not None and n % count):
        raise ShapeError(
            f"axis {along} has {n} elements, they do not divide into {count} equal parts"
        )
    part = None if n is None else n // count
    return (*shape[:along], part, *shape[along + 1 :])
