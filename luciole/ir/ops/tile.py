"""TILE."""

from collections.abc import Sequence

from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.fill import not_negative
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import agree, known_ints, product, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Tile(Op, code=BuiltinOperator.TILE, options="TileOptions"):
    """The operand side by side with itself, ``multiples[i]`` times along axis i."""

    input: Value = operand()
    multiples: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        rank = len(self.input.shape)
        agree("axes", product(self.multiples.shape), rank, "multiples", "input")
        multiples = known_ints(self.multiples, "multiples", rank)
        return unknown(rank) if multiples is None else tiled(self.input.shape, multiples)


def tiled(shape: Shape, multiples: Sequence[int]) -> Shape:
    """Compute the result's shape. Raises ShapeError when something is to be repeated less than 0
    times.
    """
    times = not_negative(multiples, "multiples")
    return tuple(None if n is None else n * m for n, m in zip(shape, times, strict=True))
