"""ADD_N."""

from collections.abc import Iterator

from luciole.ir.fields import operands
from luciole.ir.op import Op
from luciole.ir.rules import by_axis, same_extent
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class AddN(Op, code=BuiltinOperator.ADD_N, options="AddNOptions"):
    """The sum of tensors of one shape."""

    inputs: tuple[Value, ...] = operands()

    def verify(self, /) -> Iterator[str]:
        types = sorted({value.dtype.name for value in self.inputs})
        if len(types) > 1:
            yield f"the inputs are {' and '.join(types)}; all must have one type"

    def infer_shape(self, /) -> Shape:
        extents = by_axis([value.shape for value in self.inputs])
        return tuple(same_extent(axis, each) for axis, each in enumerate(extents))
