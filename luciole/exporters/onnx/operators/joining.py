"""Write operators that join tensors, cut them apart or pad them."""

from __future__ import annotations

import numpy as np

from luciole.exporters.onnx.building import (
    END,
    Building,
    constant_of,
    ints_of,
    known_shape,
    to_first,
)
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.reverse_sequence import ReverseSequence
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.strided_slice import StridedSlice, entries, has_bit
from luciole.ir.ops.unpack import Unpack
from luciole.ir.quantization import zero_code
from luciole.ir.value import UNRANKED
from luciole.schema.enums import MirrorPadMode


@rule(Concatenation)
def concatenation(k: Building, op: Concatenation) -> Term | None:
    rank = len(op.output.shape)
    if rank < 3 or not any(k.is_first(value) for value in op.inputs):
        y = k.add("Concat", *map(k.of, op.inputs), axis=op.axis)
        return activated(k, y, op.activation)
    axis = to_first(rank).index(op.axis % rank)
    y = k.add("Concat", *map(k.channels_first, op.inputs), axis=axis)
    k.put_first(op.output, activated(k, y, op.activation))
    return None


@rule(Pack)
def pack(k: Building, op: Pack) -> Term:
    axis = op.axis % len(op.output.shape)
    parts = [_with_axis(k, value, axis) for value in op.inputs]
    return k.add("Concat", *parts, axis=axis)


def _with_axis(k: Building, value: Value, axis: int) -> Term:
    if value.shape is UNRANKED:
        return k.unsqueeze(k.of(value), [axis], UNRANKED)
    shape = (*value.shape[:axis], 1, *value.shape[axis:])
    if None in shape:
        return k.unsqueeze(k.of(value), [axis], shape)
    return k.reshaped(value, *(n for n in shape if n is not None))


@rule(Unpack)
def unpack(k: Building, op: Unpack) -> list[Term]:
    axis = op.axis % len(op.value.shape)
    parts = _cut(k, k.of(op.value), axis, [1] * op.num)
    shapes = [result.shape for result in op.results]
    return [k.squeeze(p, [axis], shape) for p, shape in zip(parts, shapes, strict=True)]


def _cut(k: Building, x: Term, axis: int, sizes: list[int]) -> list[Term]:
    if len(sizes) == 1:
        return [k.add("Identity", x)]
    return k.add_all("Split", len(sizes), x, k.ints(*sizes), axis=axis)


def _split(k: Building, x: Value, results: tuple[Value, ...], axis: int) -> list[Term] | None:
    """Cut along an axis into parts of the results' extents, channels first where they are."""
    rank = len(x.shape)
    axis %= rank
    sizes = [known_shape(r)[axis] if r.shape[axis] is None else r.dims[axis] for r in results]
    if not k.is_first(x):
        return _cut(k, k.of(x), axis, sizes)
    parts = _cut(k, k.channels_first(x), to_first(rank).index(axis), sizes)
    for result, part in zip(results, parts, strict=True):
        k.put_first(result, part)
    return None


@rule(Split)
def split(k: Building, op: Split) -> list[Term] | None:
    (axis,) = ints_of(op.split_dim, "the axis")
    return _split(k, op.input, op.results, axis)


@rule(SplitV)
def split_v(k: Building, op: SplitV) -> list[Term] | None:
    (axis,) = ints_of(op.split_dim, "the axis")
    return _split(k, op.input, op.results, axis)


@rule(Slice)
def slice_(k: Building, op: Slice) -> Term:
    """Take ``size`` elements, all that are left where it is -1."""
    x = k.of(op.input)
    if op.begin.is_constant and op.size.is_constant:
        begin, size = ints_of(op.begin, "begin"), ints_of(op.size, "size")
        pairs = enumerate(zip(begin, size, strict=True))
        return k.slice(x, op.input.shape, [_cut_of(axis, *pair) for axis, pair in pairs])
    starts, size_ = k.int64(op.begin), k.int64(op.size)
    rest = k.add("Equal", size_, k.ints(-1))
    ends = k.add("Where", rest, k.ints(END), k.add("Add", starts, size_))
    return k.add("Slice", x, starts, ends, k.ints(*range(len(op.input.shape))))


def _cut_of(axis: int, begin: int, size: int) -> tuple[int, int, int, int]:
    return axis, begin, END if size < 0 else begin + size, 1


@rule(StridedSlice)
def strided_slice(k: Building, op: StridedSlice) -> Term:
    """Slice the axes that entries speak of, then drop those that shrink and add new ones."""
    if not (op.begin.is_constant and op.end.is_constant and op.strides.is_constant):
        return _computed_slice(k, op)
    begin, end, strides = (
        ints_of(value, name)
        for value, name in ((op.begin, "begin"), (op.end, "end"), (op.strides, "strides"))
    )
    taken, places = [], entries(op, len(begin), len(op.input.shape))
    for axis, place in places:
        if axis is not None and place is not None:
            taken.append((axis, *_ends(op, place, begin[place], end[place], strides[place])))
    x = k.of(op.input)
    if taken:
        x = k.slice(x, op.input.shape, taken)
    return _reshaped(k, op, x, places)


def _ends(op: StridedSlice, place: int, begin: int, end: int, step: int) -> tuple[int, int, int]:
    """Find where a slice of an axis starts and stops, as ONNX says it."""
    if has_bit(op.shrink_axis_mask, place):
        begin = 0 if has_bit(op.begin_mask, place) else begin
        return begin, END if begin == -1 else begin + 1, 1
    if has_bit(op.begin_mask, place):
        begin = 0 if step > 0 else END
    if has_bit(op.end_mask, place):
        end = END if step > 0 else -END
    elif op.offset:
        end = begin + end
    return begin, end, step


def _reshaped(
    k: Building, op: StridedSlice, x: Term, places: list[tuple[int | None, int | None]]
) -> Term:
    gone = [
        axis
        for axis, place in places
        if axis is not None and place is not None and has_bit(op.shrink_axis_mask, place)
    ]
    left = [axis for axis, _ in places if axis not in gone or axis is None]
    new = [i for i, axis in enumerate(left) if axis is None]
    if gone and new:
        x = k.add("Squeeze", x, k.ints(*gone))
    elif gone:
        x = k.squeeze(x, gone, op.output.shape)
    return k.unsqueeze(x, new, op.output.shape) if new else x


def _computed_slice(k: Building, op: StridedSlice) -> Term:
    """Slice between computed ends: entries that shrink take one element, no others are special."""
    if op.ellipsis_mask or op.new_axis_mask or op.offset:
        raise RefusedError("begin or end is computed, with an ellipsis, new axes or an offset")
    strides = ints_of(op.strides, "strides")
    places = entries(op, len(strides), len(op.input.shape))
    starts = _masked(k, op.begin, op.begin_mask, [0 if s > 0 else END for s in strides])
    ends = _masked(k, op.end, op.end_mask, [END if s > 0 else -END for s in strides])
    count = range(len(strides))
    shrinks = k.constant(np.array([has_bit(op.shrink_axis_mask, i) for i in count]))
    behind = k.add("Add", starts, k.ints(1))
    last = k.add("Where", k.add("Equal", behind, k.ints(0)), k.ints(END), behind)
    ends = k.add("Where", shrinks, last, ends)
    x = k.add("Slice", k.of(op.input), starts, ends, k.ints(*count), k.ints(*strides))
    return _reshaped(k, op, x, places)


def _masked(k: Building, value: Value, mask: int, edges: list[int]) -> Term:
    masked = k.constant(np.array([has_bit(mask, i) for i in range(len(edges))]))
    return k.add("Where", masked, k.ints(*edges), k.int64(value))


@rule(Pad, PadV2)
def pad(k: Building, op: Pad | PadV2) -> Term | None:
    """Turn paddings [axes, 2] into all those before, then all those behind."""
    dtype = op.input.dtype
    value = (
        k.of(op.constant_values) if isinstance(op, PadV2) else k.number(zero_code(op.input), dtype)
    )
    if isinstance(op, PadV2) and op.constant_values.shape != ():
        value = k.add("Squeeze", value)
    if not op.paddings.is_constant:
        turned = k.add("Transpose", k.int64(op.paddings), perm=[1, 0])
        return k.add("Pad", k.of(op.input), k.reshape(turned, -1), value)
    pads = constant_of(op.paddings, "paddings").reshape(-1, 2)
    if not k.is_first(op.input):
        return k.add("Pad", k.of(op.input), k.ints(*pads.T.reshape(-1).tolist()), value)
    turned_pads = pads[to_first(len(pads))].T.reshape(-1).tolist()
    k.put_first(op.output, k.add("Pad", k.channels_first(op.input), k.ints(*turned_pads), value))
    return None


@rule(MirrorPad)
def mirror_pad(k: Building, op: MirrorPad) -> Term:
    """Reflect at the edge's middle; where the edge itself is repeated, pick the elements."""
    pads = constant_of(op.paddings, "paddings").reshape(-1, 2)
    x = k.of(op.input)
    if op.mode == MirrorPadMode.REFLECT:
        return k.add("Pad", x, k.ints(*pads.T.reshape(-1).tolist()), mode="reflect")
    for axis, (before, after) in enumerate(pads.tolist()):
        if before or after:
            places = np.pad(np.arange(known_shape(op.input)[axis]), (before, after), "symmetric")
            x = k.add("Gather", x, k.constant(places.astype(np.int64)), axis=axis)
    return x if pads.any() else k.add("Identity", x)


@rule(ReverseV2)
def reverse(k: Building, op: ReverseV2) -> Term:
    axes = ints_of(op.axis, "the axes")
    count = len(axes)
    if not count:
        return k.add("Identity", k.of(op.tensor))
    edges = [k.ints(*[n] * count) for n in (-1, -END, -1)]
    return k.add("Slice", k.of(op.tensor), edges[0], edges[1], k.ints(*axes), edges[2])


@rule(ReverseSequence)
def reverse_sequence(k: Building, op: ReverseSequence) -> Term:
    """Bring batch and time to the front, which ONNX wants, and back."""
    rank = len(op.input.shape)
    front = [op.batch_dim % rank, op.seq_dim % rank]
    order = [*front, *(a for a in range(rank) if a not in front)]
    x, lengths = k.weights(op.input, order), k.int64(op.seq_lengths)
    y = k.add("ReverseSequence", x, lengths, batch_axis=0, time_axis=1)
    back = [order.index(a) for a in range(rank)]
    return y if back == list(range(rank)) else k.add("Transpose", y, perm=back)
