"""TRANSPOSE."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import agree, axis, known_ints, product, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Transpose(Op, code=BuiltinOperator.TRANSPOSE, options="TransposeOptions"):
    """Axes in another order: axis i of the result is axis perm[i] of the operand."""

    a: Value = operand()
    perm: Value = operand(dtype=INDEX)

    quant = Quant(result=Like("a"))
    infer_dtype = dtype_of("a")

    def infer_shape(self, /) -> Shape:
        shape = self.a.shape
        agree("axes", product(self.perm.shape), len(shape), "perm", "the operand")
        perm = known_ints(self.perm, "perm")
        if perm is None:
            return unknown(len(shape))
        return tuple(shape[i] for i in permutation(perm, len(shape)))


def permutation(perm: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front. Raises ShapeError unless each of them is there once."""
    order = tuple(axis(n, rank, "an axis of perm") for n in perm)
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"perm is {list(perm)}, each of the {rank} axes is needed once")
    return order
