"""Shape rules that several operators share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import SLIPS, LucioleError, ShapeError
from luciole.ir.value import MOST_AXES, UNRANKED, Shape, Value, element_count, shape_text
from luciole.schema.enums import Padding

if TYPE_CHECKING:
    from luciole.ir.op import Op

Ints = tuple[int | None, ...]
"""Entries of a vector or scalar of integers, None for those that are not known."""


def rank(value: Value, what: str, *allowed: int) -> Shape:
    """Return the shape of an operand. Raises ShapeError when its rank is not one of the allowed
    ones.
    """
    if len(value.shape) not in allowed:
        needed = " or ".join(map(str, allowed))
        raise ShapeError(f"{what} has shape {shape_text(value.shape)}, rank {needed} is needed")
    return value.shape


def window(
    size: int | None, kernel: int | None, stride: int, dilation: int, padding: Padding
) -> int | None:
    """Compute the output extent of a sliding window, None when an extent is unknown.

    SAME: ceil(size / stride). VALID: ceil((size - (kernel - 1) * dilation) / stride).
    """
    check_window(kernel, stride, dilation)
    if size is None or kernel is None:
        return None
    if padding == Padding.SAME:
        return -(-size // stride)
    extent = -(-(size - (kernel - 1) * dilation) // stride)
    if extent < 1:
        raise ShapeError(f"a window of {kernel} with dilation {dilation} does not fit into {size}")
    return extent


_LARGEST_WINDOW = 1 << 16
"""Stride, dilation and extent that no model has, and that no kernel must count up to."""


def check_window(kernel: int | None, stride: int, dilation: int = 1) -> None:
    """Raise ShapeError when a sliding window has no element or does not move on."""
    if stride < 1 or dilation < 1:
        raise ShapeError(f"stride is {stride} and dilation {dilation}, both must be at least 1")
    if kernel is not None and kernel < 1:
        raise ShapeError(f"the window's extent is {kernel}, it must be at least 1")
    largest = max(stride, dilation, kernel or 0)
    if largest > _LARGEST_WINDOW:
        raise ShapeError(f"a window with {largest} in it, at most {_LARGEST_WINDOW} is possible")


def padding_before(size: int, kernel: int, stride: int, dilation: int, padding: Padding) -> int:
    """Count rows of padding before the first one: half of what SAME needs, rounded down; 0 for
    VALID.
    """
    out = window(size, kernel, stride, dilation, padding) if padding == Padding.SAME else None
    if out is None:
        return 0
    return max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2


def agree(name: str, a: int | None, b: int | None, *names: str) -> int | None:
    """Find the common extent of two axes that must be equal, None where both are unknown."""
    if a is not None and b is not None and a != b:
        raise ShapeError(f"{name}: {names[0]} has {a}, {names[1]} has {b}")
    return b if a is None else a


def check_bias(bias: Value | None, outputs: int | None) -> None:
    """Raise ShapeError unless a convolution's bias, where there is one, has an element for each of
    its filter's outputs.
    """
    if bias is not None:
        agree("output channels", product(bias.shape), outputs, "bias", "filter")


def by_axis(shapes: Sequence[Shape]) -> list[tuple[int | None, ...]]:
    """List the extents of several tensors, axis by axis. Raises ShapeError unless they have one
    rank.
    """
    if not shapes:
        raise ShapeError("there is no input, at least one is needed")
    if len({len(s) for s in shapes}) != 1:
        raise ShapeError(f"the inputs are {', '.join(map(shape_text, shapes))}: their ranks differ")
    return list(zip(*shapes, strict=True))


def same_extent(axis: int, extents: Sequence[int | None]) -> int | None:
    """Find the extent that several tensors share along an axis, None where all are unknown."""
    known = {n for n in extents if n is not None}
    if len(known) > 1:
        listed = ", ".join("?" if n is None else str(n) for n in extents)
        raise ShapeError(f"axis {axis} of the inputs has {listed} elements, they must be as many")
    return known.pop() if known else None


def broadcast(*shapes: Shape) -> Shape:
    """Find the shape that element-wise operands stretch to; unknown against 1 stays unknown."""
    length = max(map(len, shapes))
    padded = [(1,) * (length - len(s)) + tuple(s) for s in shapes]
    return tuple(_stretch(extents, shapes) for extents in zip(*padded, strict=True))


def _stretch(extents: Sequence[int | None], shapes: Sequence[Shape]) -> int | None:
    large = {n for n in extents if n is not None and n != 1}
    if len(large) > 1:
        raise ShapeError(f"shapes {' and '.join(map(shape_text, shapes))} do not broadcast")
    if large:
        return large.pop()
    return None if None in extents else 1


def axis(number: int, rank: int, name: str = "axis") -> int:
    """Count an axis from the front. Raises ShapeError when there is no such axis."""
    if not -rank <= number < rank:
        raise ShapeError(f"{name} is {number}, the tensor has {rank} axes")
    return number % rank


def axes(numbers: Iterable[int], rank: int, name: str = "axis") -> tuple[int, ...]:
    """Count several axes from the front, without repeats, in order."""
    return tuple(sorted({axis(int(n), rank, name) for n in numbers}))


def known(value: Value | None) -> Array | None:
    """Read the contents of a constant operand, None when it is absent or computed."""
    return None if value is None else value.data


def known_ints(value: Value | None, name: str, length: int | None = None) -> tuple[int, ...] | None:
    """Read the contents of a constant index operand as integers, None when they are unknown.

    Raises ShapeError when it is no vector (or scalar) of integers of the wanted length.
    """
    array = known(value)
    return None if array is None else integers(array, name, length)


class PartialInts:
    """Integers that operators compute from extents, as far as these are known.

    Called with a vector or scalar, gives its entries, None for those that are not known; None
    where nothing is. Looks at few operators, whatever a file has.
    """

    _MOST = 64

    def __init__(self) -> None:
        self._entries: dict[Value, Ints | None] = {}

    def __call__(self, value: Value) -> Ints | None:
        """Find the entries of a vector or scalar."""
        if value not in self._entries and len(self._entries) < self._MOST:
            self._entries[value] = None  # while it is looked for: graphs that are built may be odd
            self._entries[value] = self._find(value)
        return self._entries.get(value)

    def _find(self, value: Value) -> Ints | None:
        if value.data is not None:
            is_short = value.data.ndim < 2 and value.data.size <= self._MOST
            is_whole = value.data.dtype.kind in "iu"
            return tuple(value.data.reshape(-1).tolist()) if is_short and is_whole else None
        op = None if value.producer is None else value.producer.op
        try:
            entries = None if op is None else op.infer_ints(self)
        except (LucioleError, *SLIPS):  # a graph that is wrong says so elsewhere
            return None
        return entries if entries is None or len(entries) <= self._MOST else None


MOST_PARTS = 1 << 16
"""Results that an operator may have where one of its attributes says how many, and numbers that
an operand may have which says something about axes or results.
"""


def integers(array: Array, name: str, length: int | None = None) -> tuple[int, ...]:
    """Read the contents of an index operand: axes, extents, positions.

    Raises ShapeError when it is no vector (or scalar) of integers of the wanted length, or longer
    than any of these is.
    """
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ShapeError(
            f"{name} is {array.dtype} of rank {array.ndim}, a vector of integers is needed"
        )
    if length is not None and array.size != length:
        raise ShapeError(f"{name} has {array.size} entries, {length} are needed")
    if array.size > MOST_PARTS:
        raise ShapeError(f"{name} has {array.size} entries, at most {MOST_PARTS} are possible")
    return tuple(int(n) for n in np.atleast_1d(array))


def unknown(rank: int) -> Shape:
    """Make a shape of which only the rank is known. Raises ShapeError for one that no tensor
    has.
    """
    if not 0 <= rank <= MOST_AXES:
        raise ShapeError(f"the result would have {rank} axes, at most {MOST_AXES} are possible")
    return (None,) * rank


def parts(shape: Shape, count: int, name: str) -> tuple[Shape, ...]:
    """Repeat a shape for as many results as an attribute says. Raises ShapeError for an absurd
    number.
    """
    if not 0 <= count <= MOST_PARTS:
        raise ShapeError(f"{name} is {count}, 0 to {MOST_PARTS} results are possible")
    return (shape,) * count


def rank_of_file(op: Op, reason: str) -> Shape:
    """Find the rank that the file gives the result, for operators whose operands do not tell it.

    Raises ShapeError with the reason when there is no result yet. The file's extents do not count.
    """
    if not op.results:
        raise ShapeError(reason)
    result = op.results[0]
    return UNRANKED if result.has_open_rank else unknown(len(result.shape))


def settled(shape: Shape) -> tuple[int, ...]:
    """Take a shape in which every extent is known, as it is when a kernel runs."""
    if None in shape:
        raise ShapeError(f"shape {shape_text(shape)} is not fully known")
    return tuple(n for n in shape if n is not None)


def transposed_macs(data: Value, filter: Value) -> int:
    """Count multiply-accumulates of a transposed convolution: each element of the data meets all
    weights of its channel, the filter's last axis.
    """
    channels = filter.dims[-1] if filter.dims else 0
    each = element_count(filter.dims) // channels if channels else 0
    return element_count(data.dims) * each


def product(extents: Iterable[int | None]) -> int | None:
    """Number of elements, None when an extent or the rank is unknown."""
    if extents is UNRANKED:
        return None
    counted = tuple(extents)
    known = tuple(n for n in counted if n is not None)
    return element_count(known) if len(known) == len(counted) else None
