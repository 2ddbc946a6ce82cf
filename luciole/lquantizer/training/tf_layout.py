"""TensorFlow forms of the operators that only move elements.

A file made for one record has its 1 in constant shapes. Where the number of records is open
(TensorFlow does not know the extent of an axis), such a 1 means all of them. Mostly that is the
first axis; recurrent networks put the steps in front of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from luciole.ir import Array, ShapeError, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.gather import Gather, places
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2, padding_pairs
from luciole.ir.ops.reshape import Reshape, attribute_shape, reshaped
from luciole.ir.ops.reverse_v2 import ReverseV2, turned
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.strided_slice import StridedSlice, element, entries, has_bit, span
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unpack import Unpack
from luciole.ir.rules import integers
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.tf_math import activate
from luciole.lquantizer.training.tf_table import differentiable


def _constant(array: Tensor, name: str) -> Array:
    """Return an operand that must be known. Raises UnsupportedError when it is computed."""
    if not isinstance(array, np.ndarray):
        raise UnsupportedError(f"{name} is computed, a constant is needed")
    return array


def _is_open(x: Tensor) -> bool:
    """Check whether the number of records is left open."""
    return len(x.shape) > 0 and x.shape[0] is None


@differentiable(Reshape)
def reshape(tf: TensorFlow, op: Reshape, x: Tensor, shape: Tensor | None) -> Tensor:
    """Reshape; a constant shape of an open tensor is that of one record, one extent stays open."""
    if shape is not None and not isinstance(shape, np.ndarray):
        return tf.reshape(x, shape)
    extents = attribute_shape(op) if shape is None else integers(shape, "shape")
    if list(x.shape).count(None) != 1 or not extents:
        return tf.reshape(x, extents)
    old = list(x.shape).index(None)
    count = op.tensor.shape[old] if len(op.tensor.shape) == len(x.shape) else 0
    if count == 1:
        return _reshaped_records(tf, x, old, extents)
    if count is None and -1 in extents and extents[0] != 1:
        return tf.reshape(x, extents)
    rest = extents[1:] if -1 not in extents[1:] else reshaped((1, *x.shape[1:]), extents)[1:]
    return tf.reshape(x, (-1, *rest))


def _reshaped_records(tf: TensorFlow, x: Tensor, old: int, target: Sequence[int]) -> Tensor:
    """Reshape each record of a tensor that has them along an axis to a target shape."""
    known = [1 if n is None else n for n in x.shape]
    extents = [n or 1 for n in reshaped(tuple(known), target)]
    new = _place_of_records(known, extents)
    rest = [*extents[:new], *extents[new + 1 :]]
    return _moved(tf, tf.reshape(_moved(tf, x, old, 0), (-1, *rest)), 0, new)


def _place_of_records(old: Sequence[int], new: Sequence[int]) -> int:
    """Find the axis that counts records in a new shape for one: the first, or where the rows of a
    record come first and there are as many extents of 1 as before, the first of these.
    """
    moved = new[0] != 1 and 1 in new and list(new).count(1) == list(old).count(1)
    return list(new).index(1) if moved else 0


def _moved(tf: TensorFlow, x: Tensor, old: int, new: int) -> Tensor:
    """Put one axis to another place."""
    order = [axis for axis in range(len(x.shape)) if axis != old]
    order.insert(new, old)
    return x if old == new else tf.transpose(x, order)


@differentiable(ExpandDims)
def expand_dims(tf: TensorFlow, op: ExpandDims, x: Tensor, axis: Tensor) -> Tensor:
    """Insert an axis."""
    return tf.expand_dims(x, integers(_constant(axis, "axis"), "axis", 1)[0])


@differentiable(Squeeze)
def squeeze(tf: TensorFlow, op: Squeeze, x: Tensor) -> Tensor:
    """Drop axes; the one that counts records stays, also where a file with one record would lose
    it.
    """
    rank = len(x.shape)
    gone = [n % rank for n in op.squeeze_dims] or [i for i in range(rank) if x.shape[i] == 1]
    if _is_open(x) and 0 in gone:
        raise ShapeError("squeeze_dims takes the axis away that counts records")
    return tf.squeeze(x, gone) if gone else x


@differentiable(Transpose)
def transpose(tf: TensorFlow, op: Transpose, x: Tensor, perm: Tensor) -> Tensor:
    """Reorder axes."""
    order = integers(_constant(perm, "perm"), "perm", len(x.shape))
    return tf.transpose(x, [n % len(x.shape) for n in order])


@differentiable(ReverseV2)
def reverse(tf: TensorFlow, op: ReverseV2, x: Tensor, axis: Tensor) -> Tensor:
    """Turn axes around, as the second half of a bidirectional layer does."""
    numbers = integers(_constant(axis, "axis"), "axis")
    return tf.reverse(x, turned(numbers, len(x.shape)))


@differentiable(Concatenation)
def concatenation(tf: TensorFlow, op: Concatenation, inputs: Sequence[Tensor]) -> Tensor:
    """Join tensors along an axis."""
    return activate(tf, tf.concat(inputs, op.axis), op.activation)


@differentiable(Split)
def split(tf: TensorFlow, op: Split, split_dim: Tensor, x: Tensor) -> list[Tensor]:
    """Cut a tensor into equal parts."""
    (axis,) = integers(_constant(split_dim, "split_dim"), "split_dim", 1)
    return list(tf.split(x, op.num_splits, axis))


@differentiable(Pack)
def pack(tf: TensorFlow, op: Pack, inputs: Sequence[Tensor]) -> Tensor:
    """Stack tensors along a new axis."""
    return tf.stack(inputs, op.axis)


@differentiable(Unpack)
def unpack(tf: TensorFlow, op: Unpack, value: Tensor) -> list[Tensor]:
    """Take a tensor apart along an axis."""
    return list(tf.unstack(value, op.num, op.axis))


@differentiable(Shape)
def shape(tf: TensorFlow, op: Shape, x: Tensor) -> Tensor:
    """Return the extents, of as many records as there are."""
    return tf.shape(x, out_type=NUMPY[op.infer_dtype()])


@differentiable(Gather)
def gather(tf: TensorFlow, op: Gather, params: Tensor, indices: Tensor) -> Tensor:
    """Pick elements along an axis."""
    axis, batch = places(op, len(params.shape), len(indices.shape))
    return tf.gather(params, indices, axis=axis, batch_dims=batch)


@differentiable(Pad)
def pad(tf: TensorFlow, op: Pad, x: Tensor, paddings: Tensor) -> Tensor:
    """Put zeros around a tensor."""
    return tf.pad(x, padding_pairs(_constant(paddings, "paddings"), len(x.shape)))


@differentiable(PadV2)
def pad_v2(tf: TensorFlow, op: PadV2, x: Tensor, paddings: Tensor, constant: Tensor) -> Tensor:
    """Put a number around a tensor."""
    pairs = padding_pairs(_constant(paddings, "paddings"), len(x.shape))
    return tf.pad(x, pairs, constant_values=tf.reshape(constant, ()))


@differentiable(Slice)
def slice_(tf: TensorFlow, op: Slice, x: Tensor, begin: Tensor, size: Tensor) -> Tensor:
    """Cut out a box; one record from the first on means all of them, on any axis."""
    if not isinstance(begin, np.ndarray) or not isinstance(size, np.ndarray):
        return tf.slice(x, begin, size)
    first, extents = integers(begin, "begin", len(x.shape)), integers(size, "size", len(x.shape))
    every = [
        n is None and (start, count) == (0, 1)
        for n, start, count in zip(x.shape, first, extents, strict=True)
    ]
    taken = [-1 if all_ else n for all_, n in zip(every, extents, strict=True)]
    return tf.slice(x, first, taken)


@differentiable(SplitV)
def split_v(
    tf: TensorFlow, op: SplitV, x: Tensor, size_splits: Tensor, split_dim: Tensor
) -> list[Tensor]:
    """Cut into parts of given sizes."""
    (axis,) = integers(_constant(split_dim, "split_dim"), "split_dim", 1)
    sizes = integers(_constant(size_splits, "size_splits"), "size_splits")
    return list(tf.split(x, list(sizes), axis))


@differentiable(Fill)
def fill(tf: TensorFlow, op: Fill, dims: Tensor, value: Tensor) -> Tensor:
    """Put the same number everywhere."""
    return tf.fill(dims, tf.reshape(value, ()))


@differentiable(BroadcastTo)
def broadcast_to(tf: TensorFlow, op: BroadcastTo, x: Tensor, shape: Tensor) -> Tensor:
    """Repeat extents of 1; a constant shape is that of one record."""
    if not isinstance(shape, np.ndarray) or not _is_open(x):
        return tf.broadcast_to(x, shape)
    extents = integers(shape, "shape")
    if len(extents) != len(x.shape):
        raise ShapeError("it puts axes in front of the one that counts records")
    return tf.broadcast_to(x, tf.concat([tf.shape(x)[:1], extents[1:]], 0))


@differentiable(Tile)
def tile(tf: TensorFlow, op: Tile, x: Tensor, multiples: Tensor) -> Tensor:
    """Lay the tensor side by side with itself."""
    return tf.tile(x, multiples)


@differentiable(SelectV2)
def select_v2(tf: TensorFlow, op: SelectV2, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Take elements of one tensor or of another."""
    return tf.where(condition, x, y)


@differentiable(StridedSlice)
def strided_slice(
    tf: TensorFlow, op: StridedSlice, x: Tensor, begin: Tensor, end: Tensor, strides: Tensor
) -> Tensor:
    """Index as Python does."""
    if all(isinstance(vector, np.ndarray) for vector in (begin, end, strides)):
        first = integers(begin, "begin")
        last, steps = (integers(v, "end and strides", len(first)) for v in (end, strides))
        return x[tuple(_keys(op, x.shape, first, last, steps))]
    masks = {k: v for k, v in op.attributes().items() if k.endswith("_mask")}
    return tf.strided_slice(x, begin, begin + end if op.offset else end, strides, **masks)


def _keys(
    op: StridedSlice, shape: Sequence[int | None], *vectors: tuple[int, ...]
) -> Iterator[int | slice | None]:
    """List Python's key for each entry."""
    for axis, place in entries(op, len(vectors[0]), len(shape)):
        if axis is None:
            yield None
        elif place is None:
            yield slice(None)
        else:
            begin, end, stride = (vector[place] for vector in vectors)
            yield _key(op, place, shape[axis], begin, end, stride)


def _key(
    op: StridedSlice, place: int, n: int | None, begin: int, end: int, stride: int
) -> int | slice:
    """Make one key; along the open axis, what takes the one record of a file takes all."""
    if has_bit(op.shrink_axis_mask, place):
        if n is None:
            raise ShapeError("it takes a single record out of the axis that counts them")
        return element(op, place, n, begin, stride)
    taken = span(op, place, 1 if n is None else n, begin, end, stride)
    if n is None:
        if taken != range(1):
            raise ShapeError("it takes only some of the records")
        return slice(None)
    if not len(taken):
        return slice(0, 0)
    return slice(taken.start, taken.stop if taken.stop >= 0 else None, taken.step)
