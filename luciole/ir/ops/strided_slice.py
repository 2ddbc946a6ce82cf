"""STRIDED_SLICE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import Ints, PartialInts, agree, known_ints, rank, rank_of_file
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class StridedSlice(Op, code=BuiltinOperator.STRIDED_SLICE, options="StridedSliceOptions"):
    """Python's ``input[begin:end:strides, ...]``; bit i of a mask speaks of entry i of the vectors.

    - begin_mask, end_mask: the entry does not count, the slice runs from or to the edge;
    - ellipsis_mask: all axes that no other entry speaks of are taken whole here;
    - new_axis_mask: a new axis of extent 1 stands here;
    - shrink_axis_mask: the single element at begin is taken and the axis is gone.

    Axes after the last entry are taken whole. With ``offset``, end counts from begin, and a slice
    that leaves the tensor is refused instead of shortened.
    """

    input: Value = operand()
    begin: Value = operand(dtype=INDEX)
    end: Value = operand(dtype=INDEX)
    strides: Value = operand(dtype=INDEX)

    begin_mask: int = attr(default=0, dump="begin_mask")
    end_mask: int = attr(default=0, dump="end_mask")
    ellipsis_mask: int = attr(default=0, dump="ellipsis_mask")
    new_axis_mask: int = attr(default=0, dump="new_axis_mask")
    shrink_axis_mask: int = attr(default=0, dump="shrink_axis_mask")
    offset: bool = attr(default=False)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        count: int | None = None
        for name, value in (("begin", self.begin), ("end", self.end), ("strides", self.strides)):
            (length,) = rank(value, name, 1)
            count = agree("entries", count, length, "begin", name)
        if count is None:
            return rank_of_file(
                self, "the rank of the result is unknown: so is the length of begin"
            )
        begin = known_ints(self.begin, "begin") or (None,) * count
        end = known_ints(self.end, "end") or (None,) * count
        strides = known_ints(self.strides, "strides") or (None,) * count
        return tuple(self._extents(count, begin, end, strides))

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        whole = known(self.input)
        vectors = (known_ints(v, "entries") for v in (self.begin, self.end, self.strides))
        (begin, end, stride) = ((None if v is None or len(v) != 1 else v[0]) for v in vectors)
        is_plain = not (self.ellipsis_mask or self.new_axis_mask or self.offset)
        if whole is None or len(self.input.shape) != 1 or not is_plain:
            return None
        if begin is None or end is None or not stride:
            return None
        if self.shrink_axis_mask:
            return whole[begin : begin + 1 or None]
        first = None if self.begin_mask else begin
        return whole[first : None if self.end_mask else end : stride]

    def _extents(self, count: int, *vectors: Sequence[int | None]) -> Iterator[int | None]:
        for axis, place in entries(self, count, len(self.input.shape)):
            n = 1 if axis is None else self.input.shape[axis]
            if axis is None or place is None:
                yield n
                continue
            begin, end, stride = (vector[place] for vector in vectors)
            if not has_bit(self.shrink_axis_mask, place):
                yield _extent(self, place, n, begin, end, stride)
            elif n is not None and begin is not None and stride is not None:
                element(self, place, n, begin, stride)


def has_bit(mask: int, place: int) -> bool:
    """Return whether a mask speaks of an entry."""
    return bool(mask >> place & 1)


def entries(op: StridedSlice, count: int, rank: int) -> list[tuple[int | None, int | None]]:
    """List the axis of each entry, in the result's order: of the input, None for a new one.

    The second number is the entry's place in the three vectors, None for axes that are taken whole.
    """
    ellipsis = [i for i in range(count) if has_bit(op.ellipsis_mask, i)]
    if len(ellipsis) > 1:
        raise ShapeError(f"ellipsis_mask speaks of {len(ellipsis)} entries, one is possible")
    new = [i for i in range(count) if has_bit(op.new_axis_mask, i) and i not in ellipsis]
    named = count - len(new) - len(ellipsis)
    if named > rank:
        raise ShapeError(f"begin speaks of {named} axes, input has {rank}")
    first = ellipsis[0] if ellipsis else count
    whole = [None] * (rank - named)
    axes = iter(range(rank))
    return [
        (None if place in new else next(axes), place)
        for place in (*range(first), *whole, *range(first + 1, count))
    ]


def element(op: StridedSlice, place: int, n: int, begin: int, stride: int) -> int:
    """Find the element that an axis shrinks to. Raises ShapeError when there is no such
    element.
    """
    index = 0 if has_bit(op.begin_mask, place) else begin
    if stride < 1:
        raise ShapeError(f"strides[{place}] is {stride}, an axis that shrinks needs a positive one")
    if not -n <= index < n:
        raise ShapeError(f"begin[{place}] is {index}, the axis has {n} elements")
    return index % n


def span(op: StridedSlice, place: int, n: int, begin: int, end: int, stride: int) -> range:
    """Find the elements that a slice of an axis takes; begin and end are moved to the nearest
    edge.
    """
    if stride == 0:
        raise ShapeError(f"strides[{place}] is 0")
    first = None if has_bit(op.begin_mask, place) else begin
    last = None if has_bit(op.end_mask, place) else end
    start, stop, step = slice(first, None if op.offset else last, stride).indices(n)
    if not op.offset or last is None:
        return range(start, stop, step)
    result = range(start, start + last, step)
    if result and not 0 <= result[-1] < n:
        raise ShapeError(f"begin[{place}] {begin} plus end {end} lies outside of the {n} elements")
    return result


def _extent(
    op: StridedSlice,
    place: int,
    n: int | None,
    begin: int | None,
    end: int | None,
    stride: int | None,
) -> int | None:
    """Count the elements that a slice takes, None where that is unknown."""
    if stride == 0:
        raise ShapeError(f"strides[{place}] is 0")
    begin = 0 if has_bit(op.begin_mask, place) else begin
    end = 0 if has_bit(op.end_mask, place) else end
    if stride is None or end is None:
        return None
    if n is not None and begin is not None:
        return len(span(op, place, n, begin, end, stride))
    relative = op.offset and not has_bit(op.end_mask, place)
    return max(-(-end // stride), 0) if relative else None
