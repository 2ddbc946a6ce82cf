"""BUCKETIZE."""

from collections.abc import Iterator
from itertools import pairwise

from luciole.ir.fields import attr, like, operand
from luciole.ir.op import Op
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Bucketize(Op, code=BuiltinOperator.BUCKETIZE, options="BucketizeOptions"):
    """For each element how many of the boundaries are not above it, INT32."""

    input: Value = operand()

    boundaries: tuple[float, ...] = attr(default=())

    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.INT32

    def verify(self, /) -> Iterator[str]:
        for low, high in pairwise(self.boundaries):
            if not low <= high:
                yield f"boundaries has {high} after {low}: they must be sorted"
                return
