"""DEPTH_TO_SPACE and SPACE_TO_DEPTH: square blocks of pixels against channels."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant, Versions
from luciole.ir.rules import rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Blocks(Op):
    """Base of both moves of blocks: an operand [batch, rows, columns, channels] and the side of the
    blocks.
    """

    input: Value = operand()

    block_size: int = attr(default=0, dump="BlockSize")

    quant = Quant(result=Like("input"), since=Versions(2, 0))
    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if self.block_size < 1:
            yield f"block_size is {self.block_size}, it must be at least 1"


class DepthToSpace(Blocks, code=BuiltinOperator.DEPTH_TO_SPACE, options="DepthToSpaceOptions"):
    """Each pixel's channels laid out as a block of pixels, row by row, with fewer channels."""

    def infer_shape(self, /) -> Shape:
        return spread(rank(self.input, "input", 4), _side(self))


class SpaceToDepth(Blocks, code=BuiltinOperator.SPACE_TO_DEPTH, options="SpaceToDepthOptions"):
    """Each block of pixels as one pixel that has the channels of all of them, row by row."""

    def infer_shape(self, /) -> Shape:
        return stacked(rank(self.input, "input", 4), _side(self))


def _side(op: Blocks) -> int:
    for fault in op.verify():
        raise ShapeError(fault)
    return op.block_size


def spread(shape: Shape, side: int) -> Shape:
    """Compute the shape with a block for each pixel. Raises ShapeError when the channels do not
    divide.
    """
    batch, rows, columns, channels = shape
    return (
        batch,
        None if rows is None else rows * side,
        None if columns is None else columns * side,
        _divided("channels", channels, side * side),
    )


def stacked(shape: Shape, side: int) -> Shape:
    """Compute the shape with a pixel for each block. Raises ShapeError when the pixels do not
    divide.
    """
    batch, rows, columns, channels = shape
    return (
        batch,
        _divided("rows", rows, side),
        _divided("columns", columns, side),
        None if channels is None else channels * side * side,
    )


def _divided(what: str, n: int | None, by: int) -> int | None:
    if n is not None and n % by:
        raise ShapeError(f"{n} {what} do not divide by {by}")
    return None if n is None else n // by
