"""LSH_PROJECTION."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, product, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, LSHProjectionType, TensorType

FLOAT32 = (TensorType.FLOAT32,)
MOST_BITS = 31
"""Of a sparse number, that INT32 holds."""


class LshProjection(Op, code=BuiltinOperator.LSH_PROJECTION, options="LSHProjectionOptions"):
    """Bits that are likely to be the same for inputs that share items: locality-sensitive hashing.

    The items are the parts of ``input`` along its first axis, as bytes. Bit j of function i says
    whether the sum of ``weight`` times Fingerprint64(hash[i, j], item), as INT64, is above 0. DENSE
    gives all bits; SPARSE a number for each function, its bits and i behind them.
    """

    hash: Value = operand(dtype=FLOAT32)
    input: Value = operand()
    weight: Value | None = operand(default=None, dtype=FLOAT32)

    type: LSHProjectionType = attr(default=LSHProjectionType.UNKNOWN)

    def infer_dtype(self, /) -> TensorType:
        return TensorType.INT32

    def infer_shape(self, /) -> Shape:
        functions, bits = rank(self.hash, "hash", 2)
        if not self.input.shape or self.input.shape[0] == 0:
            raise ShapeError("input has no items: its first axis counts them")
        if self.weight is not None:
            (weights,) = rank(self.weight, "weight", 1)
            agree("items", self.input.shape[0], weights, "input", "weight")
        return projected(self.type, functions, bits)


def projected(kind: LSHProjectionType, functions: int | None, bits: int | None) -> Shape:
    """Compute the result's shape. Raises ShapeError for bits that have no room in a number."""
    if kind == LSHProjectionType.DENSE:
        return (product((functions, bits)),)
    if kind != LSHProjectionType.SPARSE:
        raise ShapeError(f"type is {kind.name}, DENSE or SPARSE is needed")
    if bits is not None and bits > MOST_BITS:
        raise ShapeError(f"hash has {bits} bits for a number, at most {MOST_BITS} are possible")
    return (functions,)
