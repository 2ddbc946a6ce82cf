"""SEGMENT_SUM."""

from luciole.ir.errors import ShapeError
from luciole.ir.op import Op, dtype_of, operand
from luciole.ir.rules import agree, known_ints, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class SegmentSum(Op, code=BuiltinOperator.SEGMENT_SUM, options="SegmentSumOptions"):
    """Sums of rows that follow each other: row i goes to segment_ids[i].

    These start at 0 and stay or grow by 1 from row to row.
    """

    input: Value = operand()
    segment_ids: Value = operand(dtype=(TensorType.INT32,))

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        (count,) = rank(self.segment_ids, "segment_ids", 1)
        if not self.input.shape:
            raise ShapeError("input is a scalar, rows are needed")
        agree("elements", count, self.input.shape[0], "segment_ids", "the first axis")
        ids = known_ints(self.segment_ids, "segment_ids")
        return (None if ids is None else segments(ids), *self.input.shape[1:])


def segments(ids: tuple[int, ...]) -> int:
    """Count the segments. Raises ShapeError for ids that do not follow each other."""
    last = -1
    for number in ids:
        if number not in (last, last + 1) or number < 0:
            found = f"{number} after {last}" if last >= 0 else f"{number} first"
            raise ShapeError(f"segment_ids has {found}: they start at 0 and grow by 0 or 1")
        last = number
    return last + 1
