"""UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN: what falls into the same segment, combined."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, product
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator


class UnsortedSegment(Op):
    """Base of the reductions of segments: part i of the input, along the axes of ``segment_ids``,
    goes to segment segment_ids[i], parts with ids below 0 to none.
    """

    input: Value = operand()
    segment_ids: Value = operand(dtype=INDEX)
    num_segments: Value = operand(dtype=INDEX)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        agree("elements", product(self.num_segments.shape), 1, "num_segments", "a number")
        count = known_ints(self.num_segments, "num_segments", 1)
        return segmented(
            self.input.shape, self.segment_ids.shape, None if count is None else count[0]
        )


class UnsortedSegmentSum(
    UnsortedSegment, code=BuiltinOperator.UNSORTED_SEGMENT_SUM, options="UnsortedSegmentSumOptions"
):
    """The sum of each segment, 0 for an empty one."""


class UnsortedSegmentProd(
    UnsortedSegment,
    code=BuiltinOperator.UNSORTED_SEGMENT_PROD,
    options="UnsortedSegmentProdOptions",
):
    """The product of each segment, 1 for an empty one."""


class UnsortedSegmentMax(
    UnsortedSegment, code=BuiltinOperator.UNSORTED_SEGMENT_MAX, options="UnsortedSegmentMaxOptions"
):
    """The largest of each segment, NaN aside.

    An empty one is the lowest finite number of the type.
    """


class UnsortedSegmentMin(
    UnsortedSegment, code=BuiltinOperator.UNSORTED_SEGMENT_MIN, options="UnsortedSegmentMinOptions"
):
    """The smallest of each segment, NaN aside.

    An empty one is the largest finite number of the type.
    """


def segmented(shape: Shape, ids: Shape, count: int | None) -> Shape:
    """Compute the result's shape. Raises ShapeError unless the ids stand for the input's first
    axes.
    """
    if len(ids) > len(shape):
        raise ShapeError(f"segment_ids is {shape_text(ids)}, input is {shape_text(shape)}")
    for axis, (n, m) in enumerate(zip(ids, shape, strict=False)):
        agree(f"axis {axis}", n, m, "segment_ids", "input")
    if count is not None and count < 0:
        raise ShapeError(f"num_segments is {count}, nothing below 0 is possible")
    return (count, *shape[len(ids) :])
