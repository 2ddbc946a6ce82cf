"""RANGE."""

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known, product
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Range(Op, code=BuiltinOperator.RANGE, options="RangeOptions"):
    """start, start + delta, ... before limit is reached; all three are single numbers."""

    start: Value = operand()
    limit: Value = operand()
    delta: Value = operand()

    infer_dtype = dtype_of("start")

    def infer_shape(self, /) -> Shape:
        for name, value in (("start", self.start), ("limit", self.limit), ("delta", self.delta)):
            agree("elements", product(value.shape), 1, name, "a range")
        start, limit, delta = known(self.start), known(self.limit), known(self.delta)
        if start is None or limit is None or delta is None:
            return (None,)
        return (length(start, limit, delta),)


def length(start: Array, limit: Array, delta: Array) -> int:
    """Count the numbers. Raises ShapeError when the limit is never reached."""
    first, last, step = (array.reshape(-1)[0] for array in (start, limit, delta))
    if not (first <= last and step > 0) and not (first >= last and step < 0):
        raise ShapeError(f"the limit {last} is never reached from {first} in steps of {step}")
    if start.dtype.kind in "iu":
        return -((int(first) - int(last)) // int(step))
    count = np.ceil(np.abs((last - first) / step))
    if not np.isfinite(count):
        raise ShapeError(f"the limit {last} is {count} steps of {step} from {first}")
    return int(count)
