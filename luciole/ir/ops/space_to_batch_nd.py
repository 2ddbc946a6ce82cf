"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks of places against the batch."""

from collections.abc import Sequence

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.pad import padding_pairs
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import agree, integers, known, product, rank, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator

Pairs = Sequence[tuple[int, int]]
"""Elements added or cut before and after along each axis between batch and channels."""


class SpaceToBatchND(Op, code=BuiltinOperator.SPACE_TO_BATCH_ND, options="SpaceToBatchNDOptions"):
    """A batch for each place in a block: block_shape[i] places along axis 1 + i, padded before."""

    input: Value = operand()
    block_shape: Value = operand(dtype=INDEX)
    paddings: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        known = _settings(self.input, self.block_shape, self.paddings, "paddings")
        return _open(self.input) if known is None else to_batch(self.input.shape, *known)


class BatchToSpaceND(Op, code=BuiltinOperator.BATCH_TO_SPACE_ND, options="BatchToSpaceNDOptions"):
    """A place in a block for each batch: the inverse of SPACE_TO_BATCH_ND, cropped after."""

    input: Value = operand()
    block_shape: Value = operand(dtype=INDEX)
    crops: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        known = _settings(self.input, self.block_shape, self.crops, "crops")
        return _open(self.input) if known is None else to_space(self.input.shape, *known)


def _settings(
    input: Value, block_shape: Value, borders: Value, name: str
) -> tuple[tuple[int, ...], Pairs] | None:
    """Read the constant operands' contents, None when they are computed."""
    between = len(rank(input, "input", 3, 4)) - 2
    agree("axes", product(block_shape.shape), between, "block_shape", "input between its ends")
    agree("axes", rank(borders, name, 2)[0], between, name, "input between its ends")
    block, pairs = known(block_shape), known(borders)
    if block is None or pairs is None:
        return None
    return extents(block, between), padding_pairs(pairs, between, name)


def _open(input: Value) -> Shape:
    return (*unknown(len(input.shape) - 1), input.shape[-1])


def extents(block_shape: Array, between: int) -> tuple[int, ...]:
    """Read the block's extents. Raises ShapeError unless each is at least 1."""
    block = integers(block_shape, "block_shape", between)
    if min(block) < 1:
        raise ShapeError(f"block_shape is {list(block)}, each must be at least 1")
    return block


def to_batch(shape: Shape, block: Sequence[int], paddings: Pairs) -> Shape:
    """Compute the shape with a batch for each place. Raises ShapeError when an axis does not
    divide.
    """
    batch, *between, channels = shape
    padded = [None if n is None else n + b + a for n, (b, a) in zip(between, paddings, strict=True)]
    for axis, (n, part) in enumerate(zip(padded, block, strict=True), 1):
        if n is not None and n % part:
            raise ShapeError(f"axis {axis} has {n} padded elements, they do not divide by {part}")
    places = product([batch, *block])
    parts = (None if n is None else n // part for n, part in zip(padded, block, strict=True))
    return (places, *parts, channels)


def to_space(shape: Shape, block: Sequence[int], crops: Pairs) -> Shape:
    """Compute the shape with a place for each batch. Raises ShapeError when the batches do not
    divide, or nothing is left.
    """
    batch, *between, channels = shape
    places = product(block)
    assert places is not None
    if batch is not None and batch % places:
        raise ShapeError(f"{batch} batches do not divide by the {places} places of a block")
    whole = [None if n is None else n * part for n, part in zip(between, block, strict=True)]
    left = [None if n is None else n - b - a for n, (b, a) in zip(whole, crops, strict=True)]
    for axis, n in enumerate(left, 1):
        if n is not None and n < 0:
            raise ShapeError(f"axis {axis} has {whole[axis - 1]} elements, crops take more")
    return (None if batch is None else batch // places, *left, channels)
