"""ROPE."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import agree, rank
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator, RoPEMode


class Rope(Op, code=BuiltinOperator.ROPE, options="RoPEOptions"):
    """Rotary position embedding: pairs of elements of the last axis are turned by an angle.

    (a, b) becomes (a cos - b sin, a sin + b cos), with the sine and cosine that the tables have in
    the element's place. ``mode`` GPT_NEOX pairs the first half of the axis with the second, GPT_J
    each element of even index with the next. The tables stretch to the input, of rank 4. Su et al.,
    arXiv:2104.09864, section 3.4.2.
    """

    input: Value = operand()
    sin_table: Value = operand()
    cos_table: Value = operand()

    mode: RoPEMode = attr(default=RoPEMode.GPT_NEOX, dump="mode")

    quant = Quant(since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape = rank(self.input, "input", 4)
        if shape[3] is not None and shape[3] % 2:
            raise ShapeError(f"the last axis has {shape[3]} elements, pairs are needed")
        for name, table in (("sin_table", self.sin_table), ("cos_table", self.cos_table)):
            last = (table.shape or (1,))[-1]
            agree("last axis", last, shape[3], name, "input")
            if len(table.shape) > 4 or not _stretches(table.shape, shape):
                raise ShapeError(
                    f"{name} {shape_text(table.shape)} does not stretch to {shape_text(shape)}"
                )
        return shape


def _stretches(table: Shape, shape: Shape) -> bool:
    """Return whether a table can be broadcast to the input, which stays as it is."""
    pairs = zip(reversed(table), reversed(shape), strict=False)
    return all(n in (None, 1) or m in (None, n) for n, m in pairs)
