"""PAD and PADV2: a border of one value around a tensor."""

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import agree, known, product, rank, unknown
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class Pad(Op, code=BuiltinOperator.PAD, options="PadOptions"):
    """With zeros around it: paddings[i] are the numbers of them before and after along axis i."""

    input: Value = operand()
    paddings: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        return _padded(self.input, self.paddings)


class PadV2(Op, code=BuiltinOperator.PADV2, options="PadV2Options"):
    """With ``constant_values``, a single number, around it; paddings as for PAD."""

    input: Value = operand()
    paddings: Value = operand(dtype=INDEX)
    constant_values: Value = operand()

    quant = Quant(result=Like("input", "constant_values"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        agree(
            "elements", product(self.constant_values.shape), 1, "constant_values", "a padding value"
        )
        return _padded(self.input, self.paddings)


def _padded(input: Value, paddings: Value) -> Shape:
    axes, two = rank(paddings, "paddings", 2)
    agree("axes", axes, len(input.shape), "paddings", "input")
    agree("numbers per axis", two, 2, "paddings", "a padding")
    array = known(paddings)
    if array is None:
        return unknown(len(input.shape))
    pairs = padding_pairs(array, len(input.shape))
    return tuple(
        None if n is None else before + n + after
        for n, (before, after) in zip(input.shape, pairs, strict=True)
    )


def padding_pairs(paddings: Array, rank: int, name: str = "paddings") -> list[tuple[int, int]]:
    """Read the padding before and after along each axis. Raises ShapeError for impossible ones."""
    if paddings.dtype.kind not in "iu" or paddings.shape != (rank, 2):
        other = f"{paddings.dtype} {shape_text(paddings.shape)}"
        raise ShapeError(f"{name} is {other}, integers [{rank},2] are needed")
    if (paddings < 0).any():
        raise ShapeError(f"{name} is {paddings.tolist()}, nothing below 0 is possible")
    return [(int(before), int(after)) for before, after in paddings]
