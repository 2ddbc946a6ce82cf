"""SLICE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import Ints, PartialInts, agree, known_ints, product
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Slice(Op, code=BuiltinOperator.SLICE, options="SliceOptions"):
    """A box: along each axis ``size`` elements from ``begin``, -1 for all that follow."""

    input: Value = operand()
    begin: Value = operand(dtype=INDEX)
    size: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        rank = len(self.input.shape)
        for name, value in (("begin", self.begin), ("size", self.size)):
            agree("axes", product(value.shape), rank, name, "input")
        begin, size = known_ints(self.begin, "begin", rank), known_ints(self.size, "size", rank)
        return box(self.input.shape, begin or (None,) * rank, size or (None,) * rank)

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        entries = known(self.input)
        begin, size = known_ints(self.begin, "begin"), known_ints(self.size, "size")
        if entries is None or begin is None or size is None or len(self.input.shape) != 1:
            return None
        return entries[begin[0] : None if size[0] == -1 else begin[0] + size[0]]


def box(shape: Shape, begin: Sequence[int | None], size: Sequence[int | None]) -> Shape:
    """Compute the shape of the box. Raises ShapeError when it does not lie inside."""
    triples = zip(shape, begin, size, strict=True)
    return tuple(_extent(axis, *triple) for axis, triple in enumerate(triples))


def _extent(axis: int, n: int | None, begin: int | None, size: int | None) -> int | None:
    end = None if begin is None or size is None else begin + max(size, 0)
    negative = (begin is not None and begin < 0) or (size is not None and size < -1)
    if negative or (n is not None and end is not None and end > n):
        raise ShapeError(f"axis {axis} has {n} elements: begin {begin} and size {size} do not fit")
    if size != -1:
        return size
    return None if n is None or begin is None else n - begin
