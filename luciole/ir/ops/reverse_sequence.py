"""REVERSE_SEQUENCE."""

from collections.abc import Iterator

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class ReverseSequence(Op, code=BuiltinOperator.REVERSE_SEQUENCE, options="ReverseSequenceOptions"):
    """In each batch the first ``seq_lengths[batch]`` elements along ``seq_dim``, the last first."""

    input: Value = operand()
    seq_lengths: Value = operand(dtype=INDEX)

    seq_dim: int = attr(default=0, dump="seq_dim")
    batch_dim: int = attr(default=0, dump="batch_dim")

    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if self.seq_dim == self.batch_dim:
            yield f"seq_dim and batch_dim are both {self.seq_dim}, they must differ"

    def infer_shape(self, /) -> Shape:
        for fault in self.verify():
            raise ShapeError(fault)
        shape = self.input.shape
        for name, number in (("seq_dim", self.seq_dim), ("batch_dim", self.batch_dim)):
            if not 0 <= number < len(shape):
                raise ShapeError(f"{name} is {number}, the tensor has {len(shape)} axes")
        (lengths,) = rules.rank(self.seq_lengths, "seq_lengths", 1)
        rules.agree("elements", lengths, shape[self.batch_dim], "seq_lengths", "the batch axis")
        return shape
