"""SPLIT_V."""

from collections.abc import Iterator, Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class SplitV(Op, code=BuiltinOperator.SPLIT_V, options="SplitVOptions"):
    """Parts along an axis, ``size_splits[i]`` elements each; one may be -1 for all that is left."""

    input: Value = operand()
    size_splits: Value = operand(dtype=INDEX)
    split_dim: Value = operand(dtype=INDEX)

    num_splits: int = attr(default=0, dump="num_splits")

    quant = Quant(result=Like("input"))
    variadic_results = True
    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if self.num_splits < 1:
            yield f"num_splits is {self.num_splits}, it must be at least 1"

    def infer_shape(self, /) -> tuple[Shape, ...]:
        (count,) = rules.rank(self.size_splits, "size_splits", 1)
        rules.agree("parts", count, self.num_splits, "size_splits", "num_splits")
        place = rules.known_ints(self.split_dim, "split_dim", 1)
        sizes = rules.known_ints(self.size_splits, "size_splits")
        shape = self.input.shape
        if place is None:
            return rules.parts(rules.unknown(len(shape)), self.num_splits, "num_splits")
        along = rules.axis(place[0], len(shape), "split_dim")
        if sizes is None:
            part = (*shape[:along], None, *shape[along + 1 :])
            return rules.parts(part, self.num_splits, "num_splits")
        return parts_of(shape, along, sizes)


def parts_of(shape: Shape, along: int, sizes: Sequence[int | None]) -> tuple[Shape, ...]:
    """Compute the shape of each part. Raises ShapeError when they do not make up the axis."""
    extents = _extents(shape[along], sizes)
    return tuple((*shape[:along], n, *shape[along + 1 :]) for n in extents)


def _extents(n: int | None, sizes: Sequence[int | None]) -> Sequence[int | None]:
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return sizes
    total = sum(size for size in known if size != -1)
    rest = None if n is None else n - total
    wrong = min(known, default=0) < -1 or known.count(-1) > 1 or (rest is not None and rest < 0)
    if wrong or (rest and -1 not in known):
        raise ShapeError(f"size_splits is {known}, that does not make up {n} elements")
    return [rest if size == -1 else size for size in known]
