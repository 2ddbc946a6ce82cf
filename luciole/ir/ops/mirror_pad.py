"""MIRROR_PAD."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.pad import padding_pairs
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import agree, known, rank, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, MirrorPadMode


class MirrorPad(Op, code=BuiltinOperator.MIRROR_PAD, options="MirrorPadOptions"):
    """With its own mirror image around it.

    That has the outermost elements (SYMMETRIC) or not (REFLECT); paddings[i] are the numbers of
    elements before and after along axis i.
    """

    input: Value = operand()
    paddings: Value = operand(dtype=INDEX)

    mode: MirrorPadMode = attr(default=MirrorPadMode.REFLECT, dump="mode")

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        axes, _ = rank(self.paddings, "paddings", 2)
        agree("axes", axes, len(self.input.shape), "paddings", "input")
        array = known(self.paddings)
        if array is None:
            return unknown(len(self.input.shape))
        return mirrored(self.input.shape, padding_pairs(array, len(self.input.shape)), self.mode)


def mirrored(shape: Shape, pairs: list[tuple[int, int]], mode: MirrorPadMode) -> Shape:
    """Compute the shape with its mirror image. Raises ShapeError when that is not as wide."""
    result: list[int | None] = []
    for axis, (n, (before, after)) in enumerate(zip(shape, pairs, strict=True)):
        if n is not None and max(before, after) > max(n - (mode == MirrorPadMode.REFLECT), 0):
            raise ShapeError(
                f"axis {axis} has {n} elements, a mirror of {max(before, after)} is too wide "
                f"({mode.name})"
            )
        result.append(None if n is None else before + n + after)
    return tuple(result)
