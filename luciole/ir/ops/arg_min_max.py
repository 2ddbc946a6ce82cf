"""ARG_MAX and ARG_MIN: where along an axis the largest or smallest element is."""

from collections.abc import Sequence

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class Extremum(Op):
    """Base of both: the first of several equal ones, counted from 0, as ``output_type``: INT32 or
    INT64.
    """

    input: Value = operand()
    dimension: Value = operand(dtype=INDEX)

    output_type: TensorType = attr(default=TensorType.FLOAT32, dump="OutputType")

    quant = Quant()

    def infer_dtype(self, /) -> TensorType:
        if self.output_type not in INDEX:
            raise ShapeError(f"output_type is {self.output_type.name}, INT32 or INT64 is needed")
        return self.output_type

    def infer_shape(self, /) -> Shape:
        place = rules.known_ints(self.dimension, "dimension", 1)
        if place is None:
            return rules.unknown(len(self.input.shape) - 1)
        return without(self.input.shape, place)


class ArgMax(Extremum, code=BuiltinOperator.ARG_MAX, options="ArgMaxOptions"):
    """Where the largest element is."""


class ArgMin(Extremum, code=BuiltinOperator.ARG_MIN, options="ArgMinOptions"):
    """Where the smallest element is."""


def without(shape: Shape, place: Sequence[int]) -> Shape:
    """Compute the shape without an axis. Raises ShapeError when there is no such axis or it is
    empty.
    """
    at = rules.axis(place[0], len(shape), "dimension")
    if shape[at] == 0:
        raise ShapeError(f"axis {at} has no element, at least one is needed")
    return shape[:at] + shape[at + 1 :]
