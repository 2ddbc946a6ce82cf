"""DYNAMIC_UPDATE_SLICE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Like, Quant
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class DynamicUpdateSlice(
    Op, code=BuiltinOperator.DYNAMIC_UPDATE_SLICE, options="DynamicUpdateSliceOptions"
):
    """The operand with a box of it replaced by ``update``, which begins at ``start_indices``.

    Where the box would reach outside, it is moved so far that it does not.
    """

    input: Value = operand()
    update: Value = operand()
    start_indices: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input", "update"), since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        (axes,) = rank(self.start_indices, "start_indices", 1)
        agree("axes", axes, len(self.input.shape), "start_indices", "input")
        check_box(self.update.shape, self.input.shape)
        return self.input.shape


def check_box(update: Shape, shape: Shape) -> None:
    """Raise ShapeError for an update that is larger than the operand."""
    pairs = list(zip(update, shape, strict=False))
    large = any(m is not None and n is not None and m > n for m, n in pairs)
    if len(update) != len(shape) or large:
        raise ShapeError(f"update {shape_text(update)} does not fit into {shape_text(shape)}")


def clamped(start: Sequence[int], update: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Find where the box begins."""
    triples = zip(start, update, shape, strict=True)
    return [min(max(at, 0), n - m) for at, m, n in triples]
