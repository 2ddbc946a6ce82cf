"""Write operators that give tensors other axes and extents, and elements other places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.exporters.onnx.building import Building, constant_of, ints_of, known_shape, to_first
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import TensorType
from luciole.ir.ops.bitcast import Bitcast
from luciole.ir.ops.broadcast import BroadcastArgs, BroadcastTo
from luciole.ir.ops.densify import Densify
from luciole.ir.ops.dilate import Dilate
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.range import Range
from luciole.ir.ops.rank import Rank
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.space_to_batch_nd import BatchToSpaceND, SpaceToBatchND
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.tile import Tile
from luciole.ir.ops.transpose import Transpose


@rule(Reshape)
def reshape(k: Building, op: Reshape) -> Term:
    """Take the extents of the operand, of the attribute, or of the result."""
    x = k.of(op.tensor)
    if op.shape is not None and not op.shape.is_constant:
        return k.add("Reshape", x, k.int64(op.shape), allowzero=1)
    extents = None if op.shape is None else ints_of(op.shape, "the shape")
    if extents is None:
        extents = list(op.new_shape)
    return k.reshape(x, *extents)


@rule(Densify)
def densify(k: Building, op: Densify) -> Term:
    return k.of(op.input)


@rule(Bitcast)
def bitcast(k: Building, op: Bitcast) -> Term:
    """Pass on where the type stays: ONNX has this operator since opset 26 alone."""
    from luciole.exporters.onnx.errors import RefusedError

    if op.x.dtype != op.output.dtype:
        raise RefusedError("ONNX does not read a tensor's bits as another type")
    return k.add("Identity", k.of(op.x))


@rule(Dilate)
def dilate(k: Building, op: Dilate) -> Term:
    """Put padding behind each element along an axis of its own, and cut it off at the end."""
    shape, steps = known_shape(op.input), ints_of(op.dilations, "the dilations")
    rank = len(shape)
    pairs = [n for extent in shape for n in (extent, 1)]
    pads = [0] * 2 * rank + [n for step in steps for n in (0, step - 1)]
    value = k.reshape(k.of(op.padding_value))
    spread = k.add("Pad", k.reshape(k.of(op.input), *pairs), k.ints(*pads), value)
    whole = k.reshape(spread, *(n * step for n, step in zip(shape, steps, strict=True)))
    ends = [max(n - 1, 0) * step + min(n, 1) for n, step in zip(shape, steps, strict=True)]
    return k.add("Slice", whole, k.ints(*[0] * rank), k.ints(*ends))


@rule(ExpandDims)
def expand_dims(k: Building, op: ExpandDims) -> Term:
    return k.unsqueeze(k.of(op.input), ints_of(op.axis, "the axis"), op.output.shape)


@rule(Squeeze)
def squeeze(k: Building, op: Squeeze) -> Term:
    """Drop the axes that are named, or all of extent 1."""
    axes = list(op.squeeze_dims) or [a for a, n in enumerate(known_shape(op.input)) if n == 1]
    x = k.of(op.input)
    return k.squeeze(x, axes, op.output.shape) if axes else k.add("Identity", x)


@rule(Transpose)
def transpose(k: Building, op: Transpose) -> Term | None:
    """Write no node for a transposition that only puts channels first, or last again, where the
    tensor already has this layout.
    """
    order = ints_of(op.perm, "perm")
    rank = len(order)
    if rank >= 3 and order == to_first(rank) and k.is_first(op.a):
        return k.channels_first(op.a)
    if rank >= 3 and order == list(np.argsort(to_first(rank))) and not op.a.is_constant:
        k.put_first(op.output, k.of(op.a))
        return None
    return (
        k.weights(op.a, order) if op.a.is_constant else k.add("Transpose", k.of(op.a), perm=order)
    )


@rule(BroadcastTo)
def broadcast_to(k: Building, op: BroadcastTo) -> Term:
    return k.add("Expand", k.of(op.input), k.int64(op.shape))


@rule(BroadcastArgs)
def broadcast_args(k: Building, op: BroadcastArgs) -> Term:
    """Pad the shorter shape with ones in front, and take the other shape where an extent is 1."""
    sides = [known_shape(value)[0] for value in (op.s0, op.s1)]
    terms = [
        k.add("Pad", k.of(value), k.ints(max(sides) - n, 0), k.number(1, value.dtype))
        for value, n in zip((op.s0, op.s1), sides, strict=True)
    ]
    ones = k.add("Equal", terms[0], k.number(1, op.s0.dtype))
    return k.add("Where", ones, terms[1], terms[0])


@rule(Fill)
def fill(k: Building, op: Fill) -> Term:
    return k.add("Expand", k.scalar(op.value), k.int64(op.dims))


@rule(Shape)
def shape(k: Building, op: Shape) -> Term:
    extents = k.add("Shape", k.of(op.input))
    return extents if op.output.dtype == TensorType.INT64 else k.cast(extents, op.output.dtype)


@rule(Rank)
def rank(k: Building, op: Rank) -> Term:
    return k.cast(k.add("Size", k.add("Shape", k.of(op.input))), TensorType.INT32)


@rule(Range)
def range_(k: Building, op: Range) -> Term:
    return k.add("Range", *map(k.scalar, (op.start, op.limit, op.delta)))


@rule(Tile)
def tile(k: Building, op: Tile) -> Term:
    return k.add("Tile", k.of(op.input), k.int64(op.multiples))


def _exchanged(k: Building, x: Term, shape: Sequence[int], order: Sequence[int]) -> Term:
    """Exchange axes in front of a RESHAPE, which alone will do where they have one element."""
    moved = [axis for axis in order if shape[axis] != 1]
    return x if moved == sorted(moved) else k.add("Transpose", x, perm=list(order))


@rule(SpaceToBatchND)
def space_to_batch(k: Building, op: SpaceToBatchND) -> Term:
    """Cut the padded pixels [b, s, ...] into blocks, whose places go before the batch."""
    blocks = ints_of(op.block_shape, "block_shape")
    pads = constant_of(op.paddings, "paddings").reshape(-1, 2).astype(np.int64)
    batch, *extents = known_shape(op.input)
    count, rest = len(blocks), extents[len(blocks) :]
    behind = np.zeros((len(rest), 2), np.int64)
    whole = np.concatenate([np.zeros((1, 2), np.int64), pads, behind])
    x = k.of(op.input)
    if whole.any():
        none = k.number(0, op.input.dtype)
        x = k.add("Pad", x, k.ints(*whole.T.reshape(-1).tolist()), none)
    sides = [(n + int(p.sum())) // b for n, p, b in zip(extents, pads, blocks, strict=False)]
    split = [n for pair in zip(sides, blocks, strict=True) for n in pair]
    x = k.reshape(x, batch, *split, *rest)
    places = [2 + 2 * i for i in range(count)]
    order = [*places, 0, *(p - 1 for p in places), *range(1 + 2 * count, 1 + 2 * count + len(rest))]
    x = _exchanged(k, x, (batch, *split, *rest), order)
    return k.reshape(x, batch * int(np.prod(blocks)), *sides, *rest)


@rule(BatchToSpaceND)
def batch_to_space(k: Building, op: BatchToSpaceND) -> Term:
    """Put the blocks' places, which are before the batch, beside each other, then cut."""
    blocks = ints_of(op.block_shape, "block_shape")
    crops = constant_of(op.crops, "crops").reshape(-1, 2).astype(np.int64)
    batch, *extents = known_shape(op.input)
    count, rest = len(blocks), extents[len(blocks) :]
    left = batch // int(np.prod(blocks))
    x = k.reshape(k.of(op.input), *blocks, left, *extents)
    pairs = [n for i in range(count) for n in (count + 1 + i, i)]
    order = [count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))]
    x = _exchanged(k, x, (*blocks, left, *extents), order)
    sides = [n * b for n, b in zip(extents, blocks, strict=False)]
    x = k.reshape(x, left, *sides, *rest)
    starts, ends = (
        crops[:, 0].tolist(),
        [n - int(c) for n, c in zip(sides, crops[:, 1], strict=True)],
    )
    cuts = zip(range(1, 1 + count), starts, ends, [1] * count, strict=True)
    return k.slice(x, (left, *sides, *rest), cuts)
