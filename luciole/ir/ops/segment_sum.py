"""SEGMENT_SUM."""

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known, rank
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
        ids = known(self.segment_ids)
        return (None if ids is None else segments(ids), *self.input.shape[1:])


def segments(ids: Array) -> int:
    """Count the segments. Raises ShapeError for ids that do not follow each other."""
    if not ids.size:
        return 0
    wrong = np.flatnonzero((ids[1:] < ids[:-1]) | (ids[1:] > ids[:-1] + 1))
    if ids[0] != 0 or wrong.size:
        misplaced = (
            f"{ids[wrong[0] + 1]} after {ids[wrong[0]]}" if ids[0] == 0 else f"{ids[0]} first"
        )
        raise ShapeError(f"segment_ids has {misplaced}: they start at 0 and grow by 0 or 1")
    return int(ids[-1]) + 1
