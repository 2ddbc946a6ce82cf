"""Operators on shapes, and operators that only move or repeat elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building, codes_of, numpy_type
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.control_flow import joined
from luciole.importers.onnx.rules import rule
from luciole.ir import Array, TensorType, Value
from luciole.ir.ops.broadcast import BroadcastArgs, BroadcastTo
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.comparisons import GreaterEqual, LessEqual
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.depth_to_space import Blocks, DepthToSpace, SpaceToDepth
from luciole.ir.ops.elementwise_binary import (
    Add,
    Div,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    Mul,
    Sub,
)
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.reduce import ReduceProd
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.reverse_sequence import ReverseSequence
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.tile import Tile
from luciole.ir.rules import PartialInts
from luciole.schema.enums import MirrorPadMode

_FAR = 1 << 30
"""A diagonal that lies outside of every matrix."""


def attribute_or_operand(
    k: Building, node: Node, name: str, slot: int, default: list[int] | None = None
) -> list[int] | None:
    """Read integers that older versions have as an attribute, and newer ones as an operand."""
    if node.has(name):
        return node.integers(name)
    value = node.get(slot)
    return default if value is None else k.integers(value)


@rule("Transpose")
def transpose(k: Building, node: Node) -> Value:
    """Exchange axes; without an order turn it round."""
    rank = len(node[0].shape)
    return k.transpose(node[0], node.integers("perm", list(range(rank))[::-1]))


@rule("Reshape")
def reshape(k: Building, node: Node) -> Value:
    """Give other extents: -1 is what remains, 0 the extent of the operand there."""
    x, shape = node[0], node[1]
    if shape.data is None:
        partly = PartialInts()(shape)
        if partly is not None and 0 in partly and not node.flag("allowzero"):
            return _reshaped(k, x, partly, shape)
        return k.add(Reshape(x, k.cast(shape, TensorType.INT32)))
    numbers = k.integers(shape)
    target: list[int | None] = list(numbers)
    if not node.flag("allowzero"):
        target = [x.shape[i] if n == 0 else n for i, n in enumerate(target)]
        if sum(n in (None, -1) for n in target) > 1:
            return _reshaped(k, x, numbers, shape)
    if -1 in target and None not in x.shape and None not in target:
        rest = math.prod(n for n in target if n is not None and n != -1)
        remaining = math.prod(k.dims(x)) // rest if rest else 0
        settled = [remaining if n == -1 else n for n in target]
        target = settled if not rest or tuple(settled) == x.shape else target
    return k.reshape(x, [None if n == -1 else n for n in target])


def _reshaped(k: Building, x: Value, numbers: Sequence[int | None], shape: Value) -> Value:
    """Give a value extents of its own (0) that may be open, and others, those that are not known as
    a computed ``shape`` has them.
    """
    parts = []
    for i, n in enumerate(numbers):
        if n is None:
            parts.append(k.cast(_part(k, shape, range(i, i + 1)), TensorType.INT64))
        else:
            known = k.constant(np.array([n], np.int64))
            parts.append(known if n else extents(k, x, i, i + 1))
    return k.add(Reshape(x, k.cast(joined(k, parts, 0), TensorType.INT32)))


@rule("Flatten")
def flatten(k: Building, node: Node) -> Value:
    """Join the axes before one, and those from it on."""
    shape = node[0].shape
    axis = node.integer("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return k.reshape(node[0], [_product(shape[:axis]), _product(shape[axis:])])


def _product(shape: Sequence[int | None]) -> int | None:
    return None if None in shape else math.prod(n for n in shape if n is not None)


@rule("Squeeze")
def squeeze(k: Building, node: Node) -> Value:
    """Drop axes of one element: those that are named, else all."""
    shape = node[0].shape
    axes = attribute_or_operand(k, node, "axes", 1)
    if axes is None:
        axes = [i for i, n in enumerate(k.dims(node[0])) if n == 1]
    dropped = {k.axis(axis, node[0]) for axis in axes}
    if any(shape[i] not in (1, None) for i in dropped):
        raise RefusedError(f"axes {sorted(dropped)} of {list(shape)} have more than one element")
    return without_axes(k, node[0], sorted(dropped))


def without_axes(k: Building, value: Value, axes: Sequence[int]) -> Value:
    """Drop axes of one element."""
    kept = [n for i, n in enumerate(value.shape) if i not in axes]
    if kept.count(None) > 1:
        return k.add(Squeeze(value, squeeze_dims=tuple(axes)))
    return k.reshape(value, kept)


@rule("Unsqueeze")
def unsqueeze(k: Building, node: Node) -> Value:
    """Insert axes of one element."""
    axes = attribute_or_operand(k, node, "axes", 1) or []
    rank = len(node[0].shape) + len(axes)
    return with_axes(k, node[0], sorted(axis % rank for axis in axes))


def with_axes(k: Building, value: Value, places: Sequence[int]) -> Value:
    """Insert axes of one element, at places of the result in rising order."""
    shape = list(value.shape)
    codes = codes_of(value)
    if codes is not None:
        kept = [i for i in range(len(shape) + len(places)) if i not in places]
        return k.moved_codes(codes, np.expand_dims(k.known(codes), tuple(places)), kept)
    if shape.count(None) > 1:
        for place in places:
            value = k.add(ExpandDims(value, k.constant(np.array(place, np.int32))))
        return value
    for place in places:
        shape.insert(place, 1)
    return k.reshape(value, shape)


@rule("Expand")
def expand(k: Building, node: Node) -> Value:
    """Repeat along axes of one element."""
    if node[1].data is None or None in node[0].shape:
        own = k.cast(extents(k, node[0], 0, len(node[0].shape)), TensorType.INT32)
        both = k.add(BroadcastArgs(own, k.cast(node[1], TensorType.INT32)))
        return k.add(BroadcastTo(node[0], both))
    shape = np.broadcast_shapes(k.dims(node[0]), tuple(k.integers(node[1])))
    return broadcast(k, node[0], shape)


def broadcast(k: Building, value: Value, shape: Sequence[int]) -> Value:
    """Repeat a value until it has a shape."""
    if tuple(shape) == value.shape:
        return value
    if len(shape) <= 8:
        return k.add(BroadcastTo(value, k.constant(np.array(shape, np.int32))))
    raise RefusedError(f"it has {len(shape)} axes")


@rule("Concat")
def concat(k: Building, node: Node) -> Value:
    """Put values behind each other along an axis."""
    operands = [node[slot] for slot in range(len(node.operands))]
    axis = k.axis(node.integer("axis", 1), operands[0])
    filled = [v for v in operands if 0 not in v.shape] or operands[:1]
    return filled[0] if len(filled) == 1 else k.add(Concatenation(tuple(filled), axis=axis))


@rule("Split")
def split(k: Building, node: Node) -> Sequence[Value]:
    """Cut along an axis: in pieces of given sizes, else of one, the last of which may be less."""
    x, count = node[0], len(node.outputs)
    axis = k.axis(node.integer("axis", 0), x)
    extent = x.shape[axis]
    sizes = attribute_or_operand(k, node, "split", 1)
    if extent is None:
        raise RefusedError("the extent of the axis that it cuts is not known")
    if sizes is None:
        each = -(-extent // count)
        sizes = [max(0, min(each, extent - each * i)) for i in range(count)]
    if len(sizes) == 1:
        return [x]
    return k.several(
        SplitV(
            x,
            k.constant(np.array(sizes, np.int32)),
            k.constant(np.int32(axis)),
            num_splits=len(sizes),
        )
    )


@rule("Slice")
def slice_(k: Building, node: Node) -> Value:
    """Take a range of each axis, by steps of any sign."""
    x = node[0]
    rank = len(x.shape)
    starts = attribute_or_operand(k, node, "starts", 1) or []
    ends = attribute_or_operand(k, node, "ends", 2) or []
    axes = attribute_or_operand(k, node, "axes", 3, list(range(len(starts)))) or []
    steps = attribute_or_operand(k, node, "steps", 4, [1] * len(starts)) or []
    begin, end, stride, open_ = [0] * rank, [0] * rank, [1] * rank, (1 << rank) - 1
    for first, last, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = k.axis(axis, x)
        extent = x.shape[place]
        begin[place], stride[place] = first, step
        if extent is None:
            begin[place], end[place] = _open(first, last, step)
            open_ = open_ if end[place] == 0 else open_ & ~(1 << place)
            continue
        if step < 0:
            first = max(first, -extent)  # as onnxruntime: what begins before the axis begins on it
        indices = range(*slice(first, last, step).indices(extent))
        begin[place] = indices.start if len(indices) else 0
        end[place] = indices.stop if len(indices) else 0
        if not (len(indices) and indices.stop < 0):
            open_ &= ~(1 << place)
    operands = (k.constant(np.array(v, np.int32)) for v in (begin, end, stride))
    return k.make(StridedSlice, (x, *operands), end_mask=open_)


def _open(first: int, last: int, step: int) -> tuple[int, int]:
    """Bring a range of an unknown extent to circle's form, where an end of 0 is open."""
    if step < 0 or (last == 0):
        raise RefusedError("a range of an axis of unknown extent runs backwards or is empty")
    most = 2**31 - 1
    return min(first, most), 0 if last >= most else last


@rule("Shape")
def shape_(k: Building, node: Node) -> Value:
    """Return extents."""
    return extents(k, node[0], node.integer("start", 0), node.integer("end", len(node[0].shape)))


def extents(k: Building, value: Value, start: int, end: int) -> Value:
    """Return some extents of a value, INT64: a constant where they are known."""
    shape = value.shape
    if None not in shape[start:end]:
        return k.constant(np.array(shape[start:end], np.int64))
    shape_tensor = k.add(Shape(value, out_type=TensorType.INT64))
    return (
        shape_tensor
        if (start, end) == (0, len(shape))
        else _part(k, shape_tensor, range(len(shape))[start:end])
    )


_MOST_STEPS = 256
"""Operators that are looked at, whatever a file has."""
_COUNTING = (
    *(Cast, Concatenation, ExpandDims, Gather, Pack, Reshape, Slice, Squeeze, StridedSlice),
    *(Add, Sub, Mul, Div, FloorDiv, FloorMod, Maximum, Minimum),
)
"""Operators that pick and join extents, and compute others of them."""


def counts_extents(value: Value) -> bool:
    """Return whether integers are extents, computed of them, or constants of 32 bits: as files
    count extents with 32 bits, these hold all such numbers.
    """
    waiting, seen = [value], {value}
    while waiting and len(seen) <= _MOST_STEPS:
        each = waiting.pop()
        if each.data is not None:
            if each.data.dtype.kind not in "iu" or _is_long(each.data):
                return False
            continue
        op = None if each.producer is None else each.producer.op
        if isinstance(op, Shape):
            continue
        if not isinstance(op, _COUNTING):
            return False
        operands = {v for v in op.operands if v is not None} - seen
        waiting += operands
        seen |= operands
    return not waiting


def _is_long(numbers: Array) -> bool:
    """Return whether integers of either sign take more than 32 bits."""
    return bool(numbers.size) and not -(1 << 31) < numbers.min() <= numbers.max() < 1 << 31


def _part(k: Building, vector: Value, places: range) -> Value:
    begin, size = np.array([places.start], np.int32), np.array([len(places)], np.int32)
    return k.add(Slice(vector, k.constant(begin), k.constant(size)))


@rule("Size")
def size(k: Building, node: Node) -> Value:
    """Return the number of elements."""
    shape_tensor = extents(k, node[0], 0, len(node[0].shape))
    if shape_tensor.data is not None:
        return k.constant(np.array(math.prod(k.integers(shape_tensor)), np.int64))
    return k.add(ReduceProd(shape_tensor, k.constant(np.zeros(1, np.int32)), keep_dims=False))


@rule("Tile")
def tile(k: Building, node: Node) -> Value:
    """Repeat everything along each axis."""
    return k.add(Tile(node[0], k.constant(np.array(k.integers(node[1]), np.int32))))


@rule("Pad")
def pad(k: Building, node: Node) -> Value:
    """Add elements at both ends of axes; where there are to be less, cut."""
    x, mode = node[0], node.text("mode", "constant")
    rank = len(x.shape)
    amounts = attribute_or_operand(k, node, "pads", 1) or []
    axes = [a % rank for a in attribute_or_operand(k, node, "axes", 3, list(range(rank))) or []]
    table = np.zeros((rank, 2), np.int64)
    table[axes] = np.array(amounts).reshape(2, -1).T
    if (table < 0).any():
        x, table = _cut(k, x, table), np.maximum(table, 0)
    if mode == "constant":
        return padded(k, x, table, _filler(k, node, x))
    if mode == "reflect":
        return k.add(MirrorPad(x, k.int32(table), mode=MirrorPadMode.REFLECT))
    return _gathered(k, x, table, mode)


def _filler(k: Building, node: Node, x: Value) -> Value:
    value = node.get(2)
    return k.like(x, node.number("value", 0.0)) if value is None else k.reshape(value, ())


def padded(k: Building, x: Value, table: NDArray[np.int64], filler: Value) -> Value:
    """Add elements of one number at both ends of axes: [rank, 2] of them."""
    if not table.any():
        return x
    pads = k.int32(table)
    if filler.data is not None and not filler.data.any():
        return k.add(Pad(x, pads))
    return k.add(PadV2(x, pads, k.reshape(filler, (1,))))


def _cut(k: Building, x: Value, table: NDArray[np.int64]) -> Value:
    begin = np.maximum(-table[:, 0], 0)
    left = np.array(k.dims(x)) - begin - np.maximum(-table[:, 1], 0)
    return k.add(Slice(x, k.int32(begin), k.int32(left)))


def _gathered(k: Building, x: Value, table: NDArray[np.int64], mode: str) -> Value:
    """Repeat the elements of the edges ("edge"), or elements of the other end ("wrap")."""
    if mode not in ("edge", "wrap"):
        raise RefusedError(f"its mode {mode} is not done")
    for axis, (before, behind) in enumerate(table.tolist()):
        if before or behind:
            k.budget.spend((k.dims(x)[axis] + before + behind) * 8)
            places = np.pad(np.arange(k.dims(x)[axis]), (before, behind), mode)  # type: ignore[call-overload]  # one of two names
            x = k.add(Gather(x, k.int32(places), axis=axis))
    return x


def _in_blocks(k: Building, cls: type[Blocks], node: Node) -> Value:
    """Move between blocks and channels as circle does, which has channels last."""
    image = k.transpose(node[0], (0, 2, 3, 1))
    moved = k.make(cls, (image,), block_size=node.integer("blocksize"))
    return k.transpose(moved, (0, 3, 1, 2))


@rule("DepthToSpace")
def depth_to_space(k: Building, node: Node) -> Value:
    """Move channels into blocks of the image."""
    block = node.integer("blocksize")
    if node.text("mode", "DCR") == "DCR":
        return _in_blocks(k, DepthToSpace, node)
    n, channels, h, w = k.dims(node[0])
    rest = channels // block**2
    apart = k.reshape(node[0], (n, rest, block, block, h, w))
    moved = k.transpose(apart, (0, 1, 4, 2, 5, 3))
    return k.reshape(moved, (n, rest, h * block, w * block))


@rule("SpaceToDepth")
def space_to_depth(k: Building, node: Node) -> Value:
    """Move blocks of the image into channels."""
    block = node.integer("blocksize")
    if node.text("mode", "DCR") != "CRD":
        return _in_blocks(k, SpaceToDepth, node)
    n, channels, h, w = k.dims(node[0])
    apart = k.reshape(node[0], (n, channels, h // block, block, w // block, block))
    moved = k.transpose(apart, (0, 1, 3, 5, 2, 4))
    return k.reshape(moved, (n, channels * block**2, h // block, w // block))


@rule("ReverseSequence")
def reverse_sequence(k: Building, node: Node) -> Value:
    """Turn the first elements along the time axis round, as many as each sequence has."""
    time, batch = node.integer("time_axis", 0), node.integer("batch_axis", 1)
    return k.add(ReverseSequence(node[0], node[1], seq_dim=time, batch_dim=batch))


@rule("Trilu")
def trilu(k: Building, node: Node) -> Value:
    """Keep the elements on one side of a diagonal."""
    from luciole.ir.ops.select import SelectV2

    place = k.integers(node[1])[0] if node.get(1) is not None else 0
    sides = k.add(Sub(_counted(k, node[0], -1), with_axes(k, _counted(k, node[0], -2), [1])))
    compare = GreaterEqual if node.flag("upper", True) else LessEqual
    mask = k.add(compare(sides, k.constant(np.int32(max(-_FAR, min(place, _FAR))))))
    return k.add(SelectV2(mask, node[0], k.like(node[0], 0)))


def _counted(k: Building, value: Value, axis: int) -> Value:
    """Return the places along an axis: 0, 1, ..."""
    from luciole.ir.ops.range import Range

    axis = k.axis(axis, value)
    extent = value.shape[axis]
    if extent is not None:
        return k.constant(np.arange(extent, dtype=np.int32))
    count = k.reshape(k.cast(extents(k, value, axis, axis + 1), TensorType.INT32), ())
    return k.add(Range(k.constant(np.int32(0)), count, k.constant(np.int32(1))))


@rule("Range")
def range_(k: Building, node: Node) -> Value:
    """Count from one number to another."""
    from luciole.ir.ops.range import Range

    values = [node[slot] for slot in range(3)]
    if any(v.data is None for v in values):
        return k.add(Range(*(k.reshape(v, ()) for v in values)))
    start, limit, delta = (k.known(v).reshape(-1)[0] for v in values)
    count = max(0, math.ceil((float(limit) - float(start)) / float(delta)))
    k.budget.spend(count * 8)
    return k.constant((start + np.arange(count) * delta).astype(start.dtype))


@rule("ConstantOfShape")
def constant_of_shape(k: Building, node: Node) -> Value:
    """Fill a shape with one number."""
    from luciole.ir.ops.fill import Fill

    number = node.array("value").reshape(-1)[:1] if node.has("value") else np.zeros(1, np.float32)
    if node[0].data is None:
        return k.add(Fill(node[0], k.constant(number.reshape(()))))
    shape = k.integers(node[0])
    return k.held(k.filled(shape, number[0], number.dtype))


@rule("Constant")
def constant(k: Building, node: Node) -> Value:
    """Return a constant."""
    ((name, value),) = node.attributes.items()
    if name == "value":
        dtype = node.proto.attribute[0].t.data_type if node.proto is not None else 0
        from luciole.importers.onnx.element_types import held_type

        constant = k.constant(node.array(name), dtype=held_type(dtype))
        k.nodes.note_type(constant, dtype)
        return constant
    if name in ("value_float", "value_floats"):
        return k.constant(np.array(value, np.float32))
    if name in ("value_int", "value_ints"):
        return k.constant(np.array(value, np.int64))
    raise RefusedError(f"its attribute {name} is not done")


@rule("EyeLike")
def eye_like(k: Building, node: Node) -> Value:
    """Return a matrix of a diagonal of ones."""
    from luciole.importers.onnx.element_types import element_type

    dtype = element_type(node.integer("dtype")) if node.has("dtype") else node[0].dtype
    rows, columns = k.dims(node[0])
    matrix, place = k.filled((rows, columns), 0, numpy_type(dtype)), node.integer("k", 0)
    above, left = max(0, -place), max(0, place)
    count = max(0, min(rows - above, columns - left))
    matrix[np.arange(above, above + count), np.arange(left, left + count)] = 1
    return k.held(matrix)


@rule("CumSum")
def cumsum(k: Building, node: Node) -> Value:
    """Add up along an axis."""
    from luciole.ir.ops.cumsum import Cumsum

    axis = k.constant(np.int32(k.integers(node[1])[0]))
    flags = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    return k.add(Cumsum(node[0], axis, **flags))


@rule("CumProd")
def cumprod(k: Building, node: Node) -> Value:
    """Multiply along an axis, element after element."""
    x = node[0]
    axis = k.axis(k.integers(node[1])[0], x)
    extent = k.dims(x)[axis]
    if not 0 < extent <= 256:
        raise RefusedError(f"it multiplies {extent} elements")
    sizes, split_axis = k.constant(np.ones(extent, np.int32)), k.constant(np.int32(axis))
    parts = k.several(SplitV(x, sizes, split_axis, num_splits=extent)) if extent > 1 else [x]
    parts = parts[::-1] if node.flag("reverse") else parts
    if node.flag("exclusive"):
        parts = [
            k.like(x, k.filled([1 if i == axis else n for i, n in enumerate(k.dims(x))], 1)),
            *parts[:-1],
        ]
    products = parts[:1]
    for part in parts[1:]:
        products.append(k.add(Mul(products[-1], part)))
    products = products[::-1] if node.flag("reverse") else products
    return k.add(Concatenation(tuple(products), axis=axis)) if extent > 1 else products[0]
